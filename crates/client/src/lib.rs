//! HTTP/2 clients for many workspaces of one server, and a watch loop that never loses an event.
