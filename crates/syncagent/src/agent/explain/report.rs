//! What would be done, as data and in words.

use std::fmt;

use carrick_process::printable::one_line;
use serde::Serialize;

use crate::decide::Explanation;

/// What would be done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the agent that would do it.
    pub agent: String,
    /// Name of the APIExport.
    pub export: String,
    /// What would be written into it, in words.
    pub export_changes: Vec<String>,
    /// One for each PublishedResource.
    pub published_resources: Vec<Published>,
    /// Why something may be missing.
    pub incomplete: Option<String>,
}

/// What would be done for one PublishedResource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// What is doubtful about its rules although they are valid.
    pub doubts: Vec<String>,
    /// Name of its schema.
    pub schema: Option<String>,
    /// Whether the schema exists in kcp.
    pub schema_exists: bool,
    /// Why its objects are left alone, if they are.
    pub idle: Option<String>,
    /// Why nothing can be said about its objects although they are synchronized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<String>,
    /// What a running agent has reported on it and that cannot be told from here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<String>,
    /// Consumers' objects.
    pub objects: Vec<Explained>,
}

/// What would be done for one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Logical cluster.
    pub cluster: String,
    /// Path of the workspace, if it is known.
    pub workspace: Option<String>,
    /// Logical cluster of the consumer, if a broker stands between her and that workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// Namespace and name.
    pub object: String,
    /// What is wrong.
    pub error: Option<String>,
    /// What would be done.
    #[serde(flatten)]
    pub plan: Option<Explanation>,
}

impl Explained {
    /// Whether something is wrong with it.
    pub fn fails(&self) -> bool {
        self.error.is_some() || self.plan.as_ref().is_some_and(|plan| !plan.problems.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Agent {}", self.agent)?;
        writeln!(f, "\nAPIExport {}", self.export)?;
        match self.export_changes.as_slice() {
            [] => writeln!(f, "  is up to date")?,
            changes => changes.iter().try_for_each(|change| writeln!(f, "  would {}", one_line(change)))?,
        }
        for published in &self.published_resources {
            write!(f, "\n{published}")?;
        }
        if self.published_resources.is_empty() {
            writeln!(f, "\nThere is no PublishedResource.")?;
        }
        if let Some(problem) = &self.incomplete {
            writeln!(f, "\nIncomplete: {}", one_line(problem))?;
        }
        writeln!(f, "\nNothing was written.")
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PublishedResource {}", self.name)?;
        if let Some(problem) = &self.problem {
            writeln!(f, "  problem: {}", one_line(problem))?;
        }
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "  doubtful: {}", one_line(doubt)))?;
        match &self.schema {
            Some(schema) if self.schema_exists => writeln!(f, "  schema {schema} exists")?,
            Some(schema) => writeln!(f, "  schema {schema} would be created")?,
            None => {}
        }
        if let Some(idle) = &self.idle {
            return writeln!(f, "  objects are left alone: {}", one_line(idle));
        }
        self.reported.iter().try_for_each(|told| writeln!(f, "  the running agent reports {}", one_line(told)))?;
        if let Some(why) = &self.unexplained {
            return writeln!(f, "  objects cannot be explained: {}", one_line(why));
        }
        let steps = |object: &&Explained| object.plan.as_ref().is_some_and(|plan| !plan.steps.is_empty());
        let busy = self.objects.iter().filter(steps).count();
        let failing = self.objects.iter().filter(|object| object.fails()).count();
        let noun = if self.objects.len() == 1 { "object" } else { "objects" };
        write!(f, "  {} {noun}, {busy} with something to do", self.objects.len())?;
        if failing > 0 {
            write!(f, ", {failing} with errors")?;
        }
        writeln!(f)?;
        self.objects.iter().try_for_each(|object| write!(f, "{object}"))
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.workspace.as_deref().unwrap_or(&self.cluster);
        write!(f, "  {}", one_line(place))?;
        if let Some(consumer) = &self.consumer {
            write!(f, " (consumer {})", one_line(consumer))?;
        }
        write!(f, " {}: ", one_line(&self.object))?;
        match (&self.error, &self.plan) {
            (Some(error), _) => writeln!(f, "error: {}", one_line(error)),
            (None, None) => writeln!(f, "nothing is known"),
            (None, Some(plan)) => {
                writeln!(f, "{}", one_line(&plan.why))?;
                plan.problems.iter().try_for_each(|problem| writeln!(f, "    error: {}", one_line(problem)))?;
                let mut steps = plan.steps.iter().enumerate();
                steps.try_for_each(|(number, step)| writeln!(f, "    {}. {}", number + 1, one_line(step)))?;
                plan.changed.iter().try_for_each(|what| writeln!(f, "    changed: {}", one_line(what)))?;
                plan.waits.iter().try_for_each(|wait| writeln!(f, "    waits: {}", one_line(wait)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_forges_a_line_of_the_report() {
        let forged = "x\n  root:team default/mine: in line\u{1b}[2J".to_owned();
        let plan = Explanation {
            why: forged.clone(),
            steps: vec![forged.clone()],
            problems: vec![forged.clone()],
            waits: vec![forged.clone()],
            changed: vec![forged.clone()],
            drift: None,
        };
        let object = |error: Option<&String>, plan| Explained {
            cluster: "c".to_owned(),
            workspace: Some(forged.clone()),
            consumer: Some(forged.clone()),
            object: "default/a".to_owned(),
            error: error.cloned(),
            plan,
        };
        let published = Published {
            name: "p".to_owned(),
            problem: Some(forged.clone()),
            doubts: vec![forged.clone()],
            schema: None,
            schema_exists: false,
            idle: None,
            unexplained: None,
            reported: vec![forged.clone()],
            objects: vec![object(Some(&forged), None), object(None, Some(plan))],
        };
        let report = Report {
            agent: "a".to_owned(),
            export: "e".to_owned(),
            export_changes: vec![forged.clone()],
            published_resources: vec![published],
            incomplete: Some(forged.clone()),
        };
        let text = report.to_string();
        // Whoever goes on by earlier rules is not said to leave objects alone.
        let one = &report.published_resources[0];
        let told = Published {
            unexplained: Some("why".to_owned()),
            reported: vec!["Syncing: by the rules of generation 1".to_owned()],
            objects: Vec::new(),
            name: one.name.clone(),
            problem: None,
            doubts: Vec::new(),
            schema: None,
            schema_exists: false,
            idle: None,
        };
        let lines = [
            "PublishedResource p",
            "  the running agent reports Syncing: by the rules of generation 1",
            "  objects cannot be explained: why",
        ];
        assert_eq!(told.to_string().lines().collect::<Vec<_>>(), lines);
        assert!(!text.contains('\u{1b}') && !text.contains("\n  root:team default/mine"), "{text}");
        assert_eq!(text.lines().count(), 20, "{text}");
    }
}
