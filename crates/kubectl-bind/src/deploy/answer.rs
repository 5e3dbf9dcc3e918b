//! The answer of a backend.

use std::io::Read as _;
use std::path::Path;

use carrick_bind_api::install::ProviderAccess;
use carrick_bind_api::response::BindingResponse;
use carrick_client::InlineKubeconfig;

use super::error::DeployError;

/// The answer in a file, or from standard input.
pub fn of_file(file: &Path) -> Result<String, DeployError> {
    let failed =
        |error: std::io::Error| DeployError::File { file: file.display().to_string(), problem: error.to_string() };
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(failed)
}

/// The kubeconfig in an answer. Where a konnector runs already, the kubeconfig itself is all that is left of that.
pub fn read(text: &str) -> Result<ProviderAccess, DeployError> {
    match BindingResponse::parse(text) {
        Ok(answer) => of_kubeconfig(answer.kubeconfig_text()?),
        Err(problem) => of_kubeconfig(text.to_owned()).map_err(|_| problem.into()),
    }
}

/// A kubeconfig, if it is safe to use.
pub fn of_kubeconfig(text: String) -> Result<ProviderAccess, DeployError> {
    let kubeconfig = InlineKubeconfig::parse(&text)?;
    let contract = kubeconfig.namespace().ok_or(DeployError::NoContract)?.to_owned();
    Ok(ProviderAccess { server: kubeconfig.server().to_owned(), contract, text })
}
