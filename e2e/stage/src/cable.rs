//! The cable between agents and a server, which scenarios can cut and mend.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Forwards everything between a loopback port and a server, unless it is cut.
pub struct Cable {
    near: SocketAddr,
    server: SocketAddr,
    carrying: Mutex<Option<Carrying>>,
    hung_up_on: Arc<AtomicUsize>,
}

/// A cable that is not cut.
struct Carrying {
    cut: CancellationToken,
    task: JoinHandle<()>,
}

impl Cable {
    /// Lays a cable from a port to a server, which need not be there yet.
    pub fn lay(near: TcpListener, server: SocketAddr) -> anyhow::Result<Self> {
        let address = near.local_addr()?;
        let carrying = Mutex::new(Some(Carrying::start(near, Way::To(server))));
        Ok(Self { near: address, server, carrying, hung_up_on: Arc::default() })
    }

    /// Where agents connect.
    pub fn near(&self) -> SocketAddr {
        self.near
    }

    /// Breaks all connections; new ones are refused from now on.
    pub async fn cut(&self) -> anyhow::Result<()> {
        if let Some(Carrying { cut, task }) = self.carrying.lock().await.take() {
            cut.cancel();
            task.await?;
        }
        Ok(())
    }

    /// Breaks all connections; new ones are taken, counted and closed at once.
    pub async fn hang_up(&self) -> anyhow::Result<()> {
        self.cut().await?;
        self.take(Way::Nowhere(Arc::clone(&self.hung_up_on))).await
    }

    /// How many connections were closed at once so far.
    pub fn hung_up_on(&self) -> usize {
        self.hung_up_on.load(Ordering::Relaxed)
    }

    /// Takes connections again.
    pub async fn mend(&self) -> anyhow::Result<()> {
        self.cut().await?;
        self.take(Way::To(self.server)).await
    }

    async fn take(&self, way: Way) -> anyhow::Result<()> {
        let near = TcpListener::bind(self.near).await?;
        *self.carrying.lock().await = Some(Carrying::start(near, way));
        Ok(())
    }
}

/// Where connections lead.
enum Way {
    To(SocketAddr),
    /// They are counted and closed.
    Nowhere(Arc<AtomicUsize>),
}

impl Carrying {
    fn start(near: TcpListener, way: Way) -> Self {
        let cut = CancellationToken::new();
        Self { cut: cut.clone(), task: tokio::spawn(carry(near, way, cut)) }
    }
}

async fn carry(near: TcpListener, way: Way, cut: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = cut.cancelled() => break,
            Ok((near, _)) = near.accept() => match &way {
                Way::To(server) => drop(connections.spawn(connect(near, *server))),
                Way::Nowhere(count) => drop((near, count.fetch_add(1, Ordering::Relaxed))),
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(near);
    connections.shutdown().await;
}

/// Carries one connection until either side closes it, which is what the other side then sees as well.
async fn connect(mut near: TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let mut far = TcpStream::connect(server).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}
