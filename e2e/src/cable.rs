//! The cable between agents and a server, which scenarios can cut and mend.

use std::net::SocketAddr;

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
}

/// A cable that is not cut.
struct Carrying {
    cut: CancellationToken,
    task: JoinHandle<()>,
}

impl Cable {
    /// Lays a cable from a port to a server, which need not be there yet.
    pub fn lay(near: TcpListener, server: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { near: near.local_addr()?, server, carrying: Mutex::new(Some(Carrying::start(near, server))) })
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

    /// Takes connections again.
    pub async fn mend(&self) -> anyhow::Result<()> {
        let near = TcpListener::bind(self.near).await?;
        *self.carrying.lock().await = Some(Carrying::start(near, self.server));
        Ok(())
    }
}

impl Carrying {
    fn start(near: TcpListener, server: SocketAddr) -> Self {
        let cut = CancellationToken::new();
        Self { cut: cut.clone(), task: tokio::spawn(carry(near, server, cut)) }
    }
}

async fn carry(near: TcpListener, server: SocketAddr, cut: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = cut.cancelled() => break,
            Ok((near, _)) = near.accept() => drop(connections.spawn(connect(near, server))),
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
