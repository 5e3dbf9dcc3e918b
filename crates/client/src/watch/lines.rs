//! The answer of a watch request, line by line.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::channel::AnswerBody;

/// Objects are limited to a few MiB by every known server; a longer line is no event.
const LONGEST_LINE: usize = 64 << 20;

/// Splits a body into lines. Dropping it ends the request.
pub(super) struct Lines {
    body: AnswerBody,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
}

impl Lines {
    pub(super) fn new(body: AnswerBody) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line that is not empty; `None` at the end of the stream. A cut-off last line is dropped.
    ///
    /// Cancel safe: nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > LONGEST_LINE {
                return Err(format!("an event is longer than {LONGEST_LINE} bytes"));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(crate::error::chain(&*error)),
                None => return Ok(None),
            }
        }
    }
}
