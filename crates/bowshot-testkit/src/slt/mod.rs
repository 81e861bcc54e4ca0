//! DataFusion's SQL test corpus, each file run twice: by plain DataFusion in process ([`local`]), and through the whole server ([`server`],
//! [`wire`]). Differences are ours.

pub mod corpus;
pub mod local;
pub mod pair;
pub mod report;
pub mod server;
pub mod wire;

/// A side as the runner drives it: `query` answers, and `observed` gets the outcome.
macro_rules! driven {
    ($side:ty) => {
        #[async_trait::async_trait]
        impl sqllogictest::AsyncDB for $side {
            type Error = Failure;
            type ColumnType = datafusion_sqllogictest::DFColumnType;

            async fn run(&mut self, sql: &str) -> Result<DFOutput, Failure> {
                let outcome = Box::pin(self.query(sql)).await;
                self.observed.put(&outcome);
                outcome
            }

            async fn shutdown(&mut self) {}

            fn engine_name(&self) -> &str {
                "DataFusion"
            }

            async fn sleep(duration: std::time::Duration) {
                tokio::time::sleep(duration).await;
            }
        }
    };
}
pub(crate) use driven;
