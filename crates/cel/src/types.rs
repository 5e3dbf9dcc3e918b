//! The types that can be told without knowing the data: those of literals, conversions and what is made of them.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

/// A type that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
        }
    }
}

/// The type of an expression whose parts were checked; none when the data decides.
pub(crate) fn of(expression: &IdedExpr) -> Option<Type> {
    match &expression.expr {
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(_) => Some(Type::Bool),
            LiteralValue::Bytes(_) => Some(Type::Bytes),
            LiteralValue::Double(_) => Some(Type::Double),
            LiteralValue::Int(_) => Some(Type::Int),
            LiteralValue::String(_) => Some(Type::String),
            LiteralValue::UInt(_) => Some(Type::Uint),
            LiteralValue::Null => None,
        },
        Expr::Select(select) if select.test => Some(Type::Bool),
        Expr::Call(call) => of_call(call),
        _ => None,
    }
}

fn of_call(call: &CallExpr) -> Option<Type> {
    if call.target.is_some() {
        return match call.func_name.as_str() {
            "size" => Some(Type::Int),
            "matches" | "contains" | "startsWith" | "endsWith" => Some(Type::Bool),
            _ => None,
        };
    }
    match call.func_name.as_str() {
        "size" | "int" => Some(Type::Int),
        "uint" => Some(Type::Uint),
        "double" => Some(Type::Double),
        "string" => Some(Type::String),
        "bytes" => Some(Type::Bytes),
        "duration" => Some(Type::Duration),
        "timestamp" => Some(Type::Timestamp),
        "bool"
        | "matches"
        | operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::IN => Some(Type::Bool),
        operators::ADD | operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            let [left, right] = call.args.as_slice() else { return None };
            match (of(left)?, of(right)?) {
                (left, right) if left == right && left != Type::Timestamp => Some(left),
                _ => None,
            }
        }
        operators::NEGATE => of(call.args.first()?),
        _ => None,
    }
}

/// Why an operator cannot be applied to operands of known types.
pub(crate) fn check(call: &CallExpr) -> Result<(), String> {
    let known: Vec<Option<Type>> = call.args.iter().map(of).collect();
    let fits = match (call.func_name.as_str(), known.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, operands) => {
            operands.iter().flatten().all(|operand| *operand == Type::Bool)
        }
        (operators::LOGICAL_NOT, [Some(operand)]) | (operators::CONDITIONAL, [Some(operand), ..]) => {
            *operand == Type::Bool
        }
        (
            operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            [Some(left), Some(right)],
        ) => left == right,
        (operators::ADD, [Some(left), Some(right)]) => match (left, right) {
            (Type::Timestamp, Type::Duration) | (Type::Duration, Type::Timestamp) => true,
            (left, right) => left == right && !matches!(left, Type::Bool | Type::Timestamp),
        },
        (operators::SUBSTRACT, [Some(left), Some(right)]) => match (left, right) {
            (Type::Timestamp, Type::Duration) => true,
            (left, right) => left == right && !matches!(left, Type::Bool | Type::String | Type::Bytes),
        },
        (operators::MULTIPLY | operators::DIVIDE, [Some(left), Some(right)]) => {
            left == right && matches!(left, Type::Int | Type::Uint | Type::Double)
        }
        (operators::MODULO, [Some(left), Some(right)]) => left == right && matches!(left, Type::Int | Type::Uint),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|operand| operand.map_or("dyn", Type::name)).collect();
    Err(format!("found no matching overload for '{}' applied to '({})'", call.func_name, names.join(", ")))
}
