//! Runs over all contexts that kubectl knows: those of `$KUBECONFIG`, or else of `~/.kube/config`. With names on the command line, over these only.

use carrick_multicluster::Fleet;
use carrick_multicluster::providers::KubeconfigFiles;
use futures::StreamExt;

#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().init();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = move |context: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == context);
    let clusters = KubeconfigFiles::infer().names(move |_, context| is_wanted(context).then(|| context.to_owned()));
    example_contexts::controller(&Fleet::from(clusters))
        .for_each(|report| async move {
            match report {
                Ok((request, _)) => println!("{request}"),
                Err(error) => eprintln!("{error}"),
            }
        })
        .await;
}
