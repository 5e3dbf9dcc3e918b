//! The three ways to run a controller.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc;

use futures::future::select_all;
use futures::{FutureExt, Stream};
use kube::runtime::controller::Action as KubeAction;
use kube::runtime::reflector::Lookup;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::MultiClusterController;
use super::context::Context;
use super::driver::{Driver, Parts, Report};
use super::intake::Intake;
use super::source::Primary;
use super::work::{Outcome, Task, Work, judge};
use crate::action::Action;
use crate::cluster::Cluster;
use crate::name::ClusterName;
use crate::queue::{Queue, QueueConfig};
use crate::request::Request;
use crate::stats::ControllerStats;

impl<K> MultiClusterController<K>
where
    K: Lookup<DynamicType: Clone + Send + Sync> + Send + Sync + 'static,
{
    /// Reconciles objects that exist. The reconciler may return our [`Action`] or kube's.
    ///
    /// Nothing happens unless the stream is polled; dropping it aborts what runs.
    pub fn run<C, R, A, E>(
        self,
        reconcile: impl Fn(Arc<K>, Context<C>) -> R + Send + Sync + 'static,
        error_policy: impl Fn(Arc<K>, &E, Context<C>) -> Action + Send + Sync + 'static,
        data: Arc<C>,
    ) -> impl Stream<Item = Report<K, E>> + Send + 'static
    where
        C: Send + Sync + 'static,
        R: Future<Output = Result<A, E>> + Send + 'static,
        A: Into<Action>,
        E: StdError + Send + 'static,
    {
        let (reconcile, error_policy) = (Arc::new(reconcile), Arc::new(error_policy));
        let work = move |task: Task<K>| {
            let (reconcile, error_policy, data) = (reconcile.clone(), error_policy.clone(), data.clone());
            async move {
                let Some(object) = task.object.clone() else { return Outcome::Skipped };
                let context = task.context(data);
                let result = reconcile(object.clone(), context.clone()).await.map(Into::into);
                match result {
                    Ok(action) => Outcome::Done(action),
                    Err(error) => {
                        let cluster = context.cluster.clone();
                        judge(&cluster, error, |error| error_policy(object, error, context)).await
                    }
                }
            }
            .boxed()
        };
        self.drive(Arc::new(work), false, |_| {})
    }

    /// Reconciles requests: the reconciler is called with `None` after an object was deleted.
    ///
    /// Deletions outlast broken watches and hand-overs: a process that watches a cluster which another one works on remembers what was
    /// deleted meanwhile, up to 10 000 objects, and is called for all of it when it takes over. It may be called for deletions that the other
    /// process has seen to. What is deleted while no process watches is not seen by anybody: use finalizers where that matters.
    ///
    /// `None` says that the object is out of sight, and nothing more: a selector or a claim may hide it, and a workspace of kcp that moves to
    /// another shard may be gone from the old one before it is seen at the new one, where its objects are reconciled again. Before you delete
    /// anything for good because of it, ask the server, or hold the object by a finalizer.
    ///
    /// Nothing happens unless the stream is polled; dropping it aborts what runs.
    pub fn run_keyed<C, R, A, E>(
        self,
        reconcile: impl Fn(Request<K>, Option<Arc<K>>, Context<C>) -> R + Send + Sync + 'static,
        error_policy: impl Fn(Request<K>, &E, Context<C>) -> Action + Send + Sync + 'static,
        data: Arc<C>,
    ) -> impl Stream<Item = Report<K, E>> + Send + 'static
    where
        C: Send + Sync + 'static,
        R: Future<Output = Result<A, E>> + Send + 'static,
        A: Into<Action>,
        E: StdError + Send + 'static,
    {
        let (reconcile, error_policy) = (Arc::new(reconcile), Arc::new(error_policy));
        let dyntype = self.dyntype.clone();
        let work = move |task: Task<K>| {
            let (reconcile, error_policy, data) = (reconcile.clone(), error_policy.clone(), data.clone());
            let request = Request::<K>::from_key(&task.key, dyntype.clone());
            async move {
                let context = task.context(data);
                let result = reconcile(request.clone(), task.object, context.clone()).await.map(Into::into);
                match result {
                    Ok(action) => Outcome::Done(action),
                    Err(error) => {
                        let cluster = context.cluster.clone();
                        judge(&cluster, error, |error| error_policy(request, error, context)).await
                    }
                }
            }
            .boxed()
        };
        self.drive(Arc::new(work), true, |_| {})
    }

    /// Runs an unchanged reconciler of kube in every cluster, each with a context of its own.
    ///
    /// `make_context` is called once per cluster and epoch; [`Cluster::client`] is the client to put into the context.
    ///
    /// Nothing happens unless the stream is polled; dropping it aborts what runs.
    pub fn run_uniform<C, R, E>(
        self,
        make_context: impl Fn(&Cluster) -> Arc<C> + Send + Sync + 'static,
        reconcile: impl Fn(Arc<K>, Arc<C>) -> R + Send + Sync + 'static,
        error_policy: impl Fn(Arc<K>, &E, Arc<C>) -> KubeAction + Send + Sync + 'static,
    ) -> impl Stream<Item = Report<K, E>> + Send + 'static
    where
        C: Send + Sync + 'static,
        R: Future<Output = Result<KubeAction, E>> + Send + 'static,
        E: StdError + Send + 'static,
    {
        let contexts = Arc::new(Contexts { made: Mutex::default(), make: Box::new(make_context) });
        let (reconcile, error_policy) = (Arc::new(reconcile), Arc::new(error_policy));
        let closed = contexts.clone();
        let work = move |task: Task<K>| {
            let (reconcile, error_policy, contexts) = (reconcile.clone(), error_policy.clone(), contexts.clone());
            async move {
                let Some(object) = task.object else { return Outcome::Skipped };
                let context = contexts.of(&task.cluster);
                match reconcile(object.clone(), context.clone()).await {
                    Ok(action) => Outcome::Done(action.into()),
                    Err(error) => {
                        judge(&task.cluster, error, |error| error_policy(object, error, context).into()).await
                    }
                }
            }
            .boxed()
        };
        self.drive(Arc::new(work), false, move |cluster| drop(closed.made.lock().remove(cluster)))
    }

    fn drive<E: StdError + Send + 'static>(
        self,
        work: Work<K, E>,
        sees_deletions: bool,
        closed: impl Fn(&ClusterName) + Send + Sync + 'static,
    ) -> impl Stream<Item = Report<K, E>> + Send + 'static {
        let config = self.config;
        let queue = Queue::new(QueueConfig {
            first_retry: config.first_retry,
            longest_retry: config.longest_retry,
            per_cluster: config.per_cluster,
        });
        let name = self.name.unwrap_or_else(|| K::kind(&self.dyntype).to_lowercase().into());
        let stats = Arc::new(ControllerStats::new(name, queue.clone()));
        let (sender, events) = mpsc::unbounded_channel();
        let registration = self.fleet.register(sender.clone(), stats.clone());
        let intake = Arc::new(Intake::new(queue.clone(), sender, sees_deletions));
        let store = self.informer.store().clone();
        let mut sources = vec![Primary::attach(0, intake.clone(), self.informer, self.properties)];
        for setup in self.setups {
            sources.push(setup(sources.len(), &intake));
        }
        let shutdown = if self.shutdown.is_empty() {
            futures::future::pending().boxed()
        } else {
            select_all(self.shutdown).map(|_| ()).boxed()
        };
        let driver = Driver::new(Parts {
            fleet: self.fleet,
            registration,
            store,
            dyntype: self.dyntype,
            config,
            filters: self.filters,
            queue,
            intake,
            events,
            sources,
            triggers: self.triggers,
            shutdown,
            force: self.force.unwrap_or_else(|| futures::future::pending().boxed()),
            stats,
            work,
            closed: Box::new(closed),
        });
        futures::stream::unfold(driver, |mut driver| async move {
            let report = driver.next().await?;
            Some((report, driver))
        })
    }
}

type MakeContext<C> = Box<dyn Fn(&Cluster) -> Arc<C> + Send + Sync>;

/// The contexts of a uniform reconciler, one per cluster.
struct Contexts<C> {
    made: Mutex<HashMap<ClusterName, (u64, Arc<C>)>>,
    make: MakeContext<C>,
}

impl<C> Contexts<C> {
    fn of(&self, cluster: &Cluster) -> Arc<C> {
        let mut made = self.made.lock();
        if let Some((epoch, context)) = made.get(cluster.name())
            && *epoch == cluster.epoch()
        {
            return context.clone();
        }
        let context = (self.make)(cluster);
        made.insert(cluster.name().clone(), (cluster.epoch(), context.clone()));
        context
    }
}
