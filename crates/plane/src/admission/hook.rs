//! Admission webhooks, compiled, and what they say about a request.

use std::time::Duration;

use carrick_cel::{AdmissionInput, AdmissionScope};
use serde_json::Value;

use super::expression::Conditions;
use super::policy::Surroundings;
use super::request::{AdmissionRequest, internal};
use super::review::{Answer, Question};
use super::rule::{Matcher, texts};
use crate::status::Status;
use crate::webhook::{HookAddress, HookClient, Pending, Resolve, known};

/// One entry of a webhook configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    name: String,
    matcher: Matcher,
    conditions: Conditions,
    /// `failurePolicy: Ignore`.
    lenient: bool,
    timeout: Duration,
    versions: Vec<String>,
    address: HookAddress,
    side_effects: String,
    /// `reinvocationPolicy: IfNeeded`.
    again: bool,
}

/// How webhooks are called.
pub(super) struct Calls<'a> {
    pub(super) client: &'a HookClient,
    pub(super) resolve: Resolve<'a>,
}

/// Why a call gave nothing to go by.
enum Failure {
    /// The webhook could not be asked, or its answer made no sense: the failure policy decides.
    Call(String),
    /// The request fails, whatever the failure policy is.
    Refused(Status),
}

impl Webhook {
    /// Reads one entry of a configuration.
    pub(super) fn read(hook: &Value) -> Self {
        let lenient = hook["failurePolicy"] == "Ignore";
        Self {
            name: hook["name"].as_str().unwrap_or_default().to_owned(),
            matcher: Matcher::of_webhook(hook),
            conditions: Conditions::read(&hook["matchConditions"], &AdmissionScope::new(false), lenient),
            lenient,
            timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(10)),
            versions: texts(&hook["admissionReviewVersions"]),
            address: HookAddress::read(&hook["clientConfig"]),
            side_effects: hook["sideEffects"].as_str().unwrap_or_default().to_owned(),
            again: hook["reinvocationPolicy"] == "IfNeeded",
        }
    }

    /// The version in which the webhook wants to receive a request, if it does.
    fn wants<'a>(
        &self,
        request: &'a AdmissionRequest<'_>,
        object: &Value,
        around: &Surroundings<'_>,
    ) -> Result<Option<&'a str>, Status> {
        let Some(version) = self.matcher.version(request, object, around.namespaces)? else { return Ok(None) };
        if self.conditions.is_empty() {
            return Ok(Some(version));
        }
        let (object, old) = (shown(object, version, around)?, shown(request.old, version, around)?);
        let described = request.describe(version);
        let input =
            AdmissionInput { object: &object, old_object: &old, request: &described, ..AdmissionInput::default() };
        let matched = self
            .conditions
            .hold(&AdmissionScope::new(false).bind(&input))
            .map_err(|why| Status::forbidden(&request.resource.group, &request.resource.plural, request.name, &why))?;
        Ok(matched.then_some(version))
    }

    /// Begins to ask.
    fn ask(
        &self,
        request: &AdmissionRequest<'_>,
        version: &str,
        object: &Value,
        old: &Value,
        calls: &Calls<'_>,
    ) -> Result<(Question, Pending), Failure> {
        if request.dry_run && !matches!(self.side_effects.as_str(), "None" | "NoneOnDryRun") {
            let message = format!("admission webhook {:?} does not support dry run", self.name);
            return Err(Failure::Refused(Status::bad_request(message)));
        }
        let question = Question::new(&self.versions, request, version, object, old).map_err(Failure::Call)?;
        let pending = calls.client.start(&self.address, question.document.clone(), self.timeout, calls.resolve);
        Ok((question, pending))
    }

    /// Waits for the answer; warnings are added, a refusal is an error.
    fn receive(
        &self,
        question: &Question,
        pending: Pending,
        mutating: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Failure> {
        let review = pending.wait().and_then(|review| known(review, "admission.k8s.io", "AdmissionReview"));
        let review = review.map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
        let answer = question.answered(&review, mutating).map_err(Failure::Call)?;
        warnings.extend(answer.warnings.iter().cloned());
        if answer.allowed { Ok(answer) } else { Err(Failure::Refused(answer.refusal(&self.name))) }
    }

    /// Applies the failure policy: nothing if the failure does not matter.
    fn judged(&self, failure: Failure) -> Result<(), Status> {
        match failure {
            Failure::Call(why) if self.lenient => {
                tracing::warn!(webhook = self.name, why, "failed calling webhook, failing open");
                Ok(())
            }
            Failure::Call(why) => Err(internal(&format!("failed calling webhook {:?}: {why}", self.name))),
            Failure::Refused(status) => Err(status),
        }
    }
}

/// An object of the request in a version of its kind.
fn shown(object: &Value, version: &str, around: &Surroundings<'_>) -> Result<Value, Status> {
    match object {
        Value::Null => Ok(Value::Null),
        object => (around.convert)(object, version).map_err(|why| internal(&why)),
    }
}

/// Lets webhooks change an object, one after the other; those that ask for it see it again if others changed it after them.
pub(super) fn mutate(
    hooks: &[Webhook],
    request: &AdmissionRequest<'_>,
    object: &mut Value,
    around: &Surroundings<'_>,
    calls: &Calls<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let mut called_before: Vec<usize> = Vec::new();
    let mut to_repeat: Vec<usize> = Vec::new();
    for round in 0..2 {
        for (at, hook) in hooks.iter().enumerate() {
            if round == 1 && !to_repeat.contains(&at) {
                continue;
            }
            let Some(version) = hook.wants(request, object, around)? else { continue };
            let changed = match change(hook, version, request, object, around, calls, warnings) {
                Ok(changed) => changed,
                Err(failure) => {
                    hook.judged(failure)?;
                    false
                }
            };
            if changed && round == 0 {
                to_repeat.append(&mut called_before);
            }
            if hook.again {
                called_before.push(at);
            }
        }
        if to_repeat.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

/// Asks one webhook; whether it changed the object.
fn change(
    hook: &Webhook,
    version: &str,
    request: &AdmissionRequest<'_>,
    object: &mut Value,
    around: &Surroundings<'_>,
    calls: &Calls<'_>,
    warnings: &mut Vec<String>,
) -> Result<bool, Failure> {
    let seen = shown(object, version, around).map_err(Failure::Refused)?;
    let seen = if seen.is_null() { seen } else { request.located(&seen) };
    let old = shown(request.old, version, around).map_err(Failure::Refused)?;
    let old = if old.is_null() { old } else { request.located(&old) };
    let (question, pending) = hook.ask(request, version, &seen, &old, calls)?;
    let answer = hook.receive(&question, pending, true, warnings)?;
    if answer.patch.is_empty() {
        return Ok(false);
    }
    if seen.is_null() {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(Failure::Refused(internal(&format!("admission webhook {:?} {why}", hook.name))));
    }
    let mut patched = answer.patched(&seen).map_err(Failure::Refused)?;
    if let Some(schema) = request.resource.version(version).and_then(|found| found.schema.as_ref()) {
        schema.apply_defaults(&mut patched);
    }
    let changed = patched != seen;
    *object = shown(&patched, request.version, around).map_err(Failure::Refused)?;
    Ok(changed)
}

/// Asks webhooks whether a request may go on, all at the same time; the first refusal in their order is returned.
pub(super) fn validate(
    hooks: &[Webhook],
    request: &AdmissionRequest<'_>,
    object: &Value,
    around: &Surroundings<'_>,
    calls: &Calls<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let mut wanted = Vec::new();
    for hook in hooks {
        if let Some(version) = hook.wants(request, object, around)? {
            let (object, old) = (shown(object, version, around)?, shown(request.old, version, around)?);
            let located = |object: Value| if object.is_null() { object } else { request.located(&object) };
            wanted.push((hook, version, located(object), located(old)));
        }
    }
    let asked: Vec<_> = wanted
        .iter()
        .map(|(hook, version, object, old)| (*hook, hook.ask(request, version, object, old, calls)))
        .collect();
    let mut first = None;
    for (hook, asked) in asked {
        let received = asked.and_then(|(question, pending)| hook.receive(&question, pending, false, warnings));
        if let Err(failure) = received {
            first = first.or(hook.judged(failure).err());
        }
    }
    first.map_or(Ok(()), Err)
}
