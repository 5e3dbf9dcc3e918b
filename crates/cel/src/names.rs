//! Which functions an expression may call, by name and number of arguments.

/// A function: its name, whether it is called on a value, and how many arguments it takes besides that value.
pub(crate) struct Signature {
    pub name: &'static str,
    pub member: bool,
    pub arguments: &'static [usize],
}

const fn global(name: &'static str, arguments: &'static [usize]) -> Signature {
    Signature { name, member: false, arguments }
}

const fn member(name: &'static str, arguments: &'static [usize]) -> Signature {
    Signature { name, member: true, arguments }
}

/// The standard library without operators.
pub(crate) const STANDARD: &[Signature] = &[
    global("size", &[1]),
    member("size", &[0]),
    global("int", &[1]),
    global("uint", &[1]),
    global("double", &[1]),
    global("string", &[1]),
    global("bytes", &[1]),
    global("bool", &[1]),
    global("duration", &[1]),
    global("timestamp", &[1]),
    global("type", &[1]),
    global("dyn", &[1]),
    global("matches", &[2]),
    member("matches", &[1]),
    member("contains", &[1]),
    member("startsWith", &[1]),
    member("endsWith", &[1]),
    member("getFullYear", &[0, 1]),
    member("getMonth", &[0, 1]),
    member("getDate", &[0, 1]),
    member("getDayOfMonth", &[0, 1]),
    member("getDayOfWeek", &[0, 1]),
    member("getDayOfYear", &[0, 1]),
    member("getHours", &[0, 1]),
    member("getMinutes", &[0, 1]),
    member("getSeconds", &[0, 1]),
    member("getMilliseconds", &[0, 1]),
];

/// cel-go's string extension.
pub(crate) const STRINGS: &[Signature] = &[
    member("charAt", &[1]),
    member("indexOf", &[1, 2]),
    member("lastIndexOf", &[1, 2]),
    member("join", &[0, 1]),
    member("lowerAscii", &[0]),
    member("upperAscii", &[0]),
    member("trim", &[0]),
    member("replace", &[2, 3]),
    member("split", &[1, 2]),
    member("substring", &[1, 2]),
    member("format", &[1]),
    member("reverse", &[0]),
    global("strings.quote", &[1]),
];

/// cel-go's list extension, without `lists.range`: it would let a short expression fill the memory.
pub(crate) const LISTS: &[Signature] = &[
    member("slice", &[2]),
    member("flatten", &[0, 1]),
    member("distinct", &[0]),
    member("sort", &[0]),
    member("@sortByAssociatedKeys", &[1]),
];

/// Optional values.
pub(crate) const OPTIONALS: &[Signature] = &[
    global("optional.of", &[1]),
    global("optional.ofNonZeroValue", &[1]),
    global("optional.none", &[0]),
    member("hasValue", &[0]),
    member("value", &[0]),
    member("or", &[1]),
    member("orValue", &[1]),
];

/// The list functions of Kubernetes.
pub(crate) const KUBERNETES: &[Signature] =
    &[member("isSorted", &[0]), member("sum", &[0]), member("min", &[0]), member("max", &[0])];
