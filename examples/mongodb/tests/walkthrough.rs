//! The whole story, on planes in this process.

use example_mongodb::walkthrough::{Servers, play};

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_order_change_and_delete_a_database() -> anyhow::Result<()> {
    play(&Servers::embedded().await?).await
}
