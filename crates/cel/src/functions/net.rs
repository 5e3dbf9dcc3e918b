//! Functions on IP addresses and networks.

use std::net::IpAddr;

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::signature::Row;
use crate::value::cidr::{Cidr, parse_ip};
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("ip(string): IP", |arguments, _| parse_ip(text("ip", arguments)?).map(Value::Ip).ok_or_else(|| failed("ip"))),
    ("isIP(string): bool", |arguments, _| Ok(Value::Bool(parse_ip(text("isIP", arguments)?).is_some()))),
    ("ip.isCanonical(string): bool", |arguments, _| {
        let given = text("ip.isCanonical", arguments)?;
        let found = parse_ip(given).ok_or_else(|| failed("ip.isCanonical"))?;
        Ok(Value::Bool(found.to_string() == given))
    }),
    ("string(IP): string\nstring(CIDR): string", to_string),
    ("IP.family(): int", |arguments, _| on_ip("family", arguments, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 }))),
    ("IP.isUnspecified(): bool", |arguments, _| test("isUnspecified", arguments, IpAddr::is_unspecified)),
    ("IP.isLoopback(): bool", |arguments, _| test("isLoopback", arguments, IpAddr::is_loopback)),
    ("IP.isLinkLocalMulticast(): bool", |arguments, _| test("isLinkLocalMulticast", arguments, link_local_multicast)),
    ("IP.isLinkLocalUnicast(): bool", |arguments, _| test("isLinkLocalUnicast", arguments, link_local_unicast)),
    ("IP.isGlobalUnicast(): bool", |arguments, _| test("isGlobalUnicast", arguments, global_unicast)),
    ("cidr(string): CIDR", |arguments, _| {
        Cidr::parse(text("cidr", arguments)?).map(Value::Cidr).ok_or_else(|| failed("cidr"))
    }),
    ("isCIDR(string): bool", |arguments, _| Ok(Value::Bool(Cidr::parse(text("isCIDR", arguments)?).is_some()))),
    ("CIDR.containsIP(string): bool\nCIDR.containsIP(IP): bool", contains_ip),
    ("CIDR.containsCIDR(string): bool\nCIDR.containsCIDR(CIDR): bool", contains_cidr),
    ("CIDR.ip(): IP", |arguments, _| on_cidr("ip", arguments, |cidr| Value::Ip(cidr.address))),
    ("CIDR.prefixLength(): int", |arguments, _| {
        on_cidr("prefixLength", arguments, |cidr| Value::Int(i64::from(cidr.bits)))
    }),
    ("CIDR.masked(): CIDR", |arguments, _| on_cidr("masked", arguments, |cidr| Value::Cidr(cidr.masked()))),
];

fn text<'a>(name: &str, arguments: &'a [Value]) -> Result<&'a str, EvalError> {
    match arguments {
        [Value::String(text)] => Ok(text),
        _ => Err(overload(name, arguments)),
    }
}

fn on_ip(name: &str, arguments: &[Value], result: impl Fn(&IpAddr) -> Value) -> Outcome {
    match arguments {
        [Value::Ip(ip)] => Ok(result(ip)),
        _ => Err(overload(name, arguments)),
    }
}

fn test(name: &str, arguments: &[Value], holds: impl Fn(&IpAddr) -> bool) -> Outcome {
    on_ip(name, arguments, |ip| Value::Bool(holds(ip)))
}

fn on_cidr(name: &str, arguments: &[Value], result: impl Fn(&Cidr) -> Value) -> Outcome {
    match arguments {
        [Value::Cidr(cidr)] => Ok(result(cidr)),
        _ => Err(overload(name, arguments)),
    }
}

fn to_string(arguments: &[Value], _: &Budget) -> Outcome {
    match arguments {
        [Value::Ip(ip)] => Ok(Value::string(ip.to_string())),
        [Value::Cidr(cidr)] => Ok(Value::string(cidr.to_string())),
        _ => Err(overload("string", arguments)),
    }
}

fn contains_ip(arguments: &[Value], _: &Budget) -> Outcome {
    let (cidr, ip) = match arguments {
        [Value::Cidr(cidr), Value::Ip(ip)] => (cidr, Some(*ip)),
        [Value::Cidr(cidr), Value::String(text)] => (cidr, parse_ip(text)),
        _ => return Err(overload("containsIP", arguments)),
    };
    ip.map(|ip| Value::Bool(cidr.contains(ip))).ok_or_else(|| failed("containsIP"))
}

fn contains_cidr(arguments: &[Value], _: &Budget) -> Outcome {
    let (cidr, other) = match arguments {
        [Value::Cidr(cidr), Value::Cidr(other)] => (cidr, Some(*other)),
        [Value::Cidr(cidr), Value::String(text)] => (cidr, Cidr::parse(text)),
        _ => return Err(overload("containsCIDR", arguments)),
    };
    let other = other.ok_or_else(|| failed("containsCIDR"))?;
    Ok(Value::Bool(cidr.bits <= other.bits && cidr.contains(other.address)))
}

fn link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn global_unicast(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !broadcast && !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !link_local_unicast(ip)
}
