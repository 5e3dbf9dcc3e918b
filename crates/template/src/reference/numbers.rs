//! Functions on numbers.

use super::row::Row;

pub(super) const MATH: &[Row] = &[
    Row("add", "add NUMBER…", "the sum", Some(("{{ add 1 2 3 }}", "6"))),
    Row("add1", "add1 NUMBER", "one more", Some(("{{ add1 2 }}", "3"))),
    Row("sub", "sub A B", "the difference", Some(("{{ sub 5 3 }}", "2"))),
    Row("div", "div A B", "the quotient without its fraction", Some(("{{ div 7 2 }}", "3"))),
    Row("mod", "mod A B", "the remainder", Some(("{{ mod 7 2 }}", "1"))),
    Row("mul", "mul NUMBER…", "the product", Some(("{{ mul 2 3 4 }}", "24"))),
    Row("max", "max NUMBER…", "the largest", Some(("{{ max 1 3 2 }}", "3"))),
    Row("biggest", "biggest NUMBER…", "old name of max", Some(("{{ biggest 1 3 2 }}", "3"))),
    Row("min", "min NUMBER…", "the smallest", Some(("{{ min 3 1 2 }}", "1"))),
    Row("floor", "floor NUMBER", "rounds down to a whole float", Some(("{{ floor 1.9 }}", "1"))),
    Row("ceil", "ceil NUMBER", "rounds up to a whole float", Some(("{{ ceil 1.1 }}", "2"))),
    Row(
        "round",
        "round NUMBER DIGITS",
        "rounds to DIGITS digits after the point",
        Some(("{{ round 1.2345 2 }}", "1.23")),
    ),
    Row(
        "randInt",
        "randInt FROM END",
        "a random integer that is at least FROM and less than END",
        Some(("{{ randInt 5 6 }}", "5")),
    ),
    Row("until", "until COUNT", "the integers from 0 to COUNT - 1, as a list", Some(("{{ until 4 }}", "[0 1 2 3]"))),
    Row(
        "untilStep",
        "untilStep START END STEP",
        "integers from START up to but not including END, in steps",
        Some(("{{ untilStep 3 9 2 }}", "[3 5 7]")),
    ),
    Row(
        "seq",
        "seq END, seq START END, seq START STEP END",
        "integers up to and including END, as text",
        Some(("{{ seq 1 2 7 }}", "1 3 5 7")),
    ),
];

pub(super) const FLOATS: &[Row] = &[
    Row("addf", "addf NUMBER…", "the sum", Some(("{{ addf 1.5 2 }}", "3.5"))),
    Row("add1f", "add1f NUMBER", "one more", Some(("{{ add1f 1.5 }}", "2.5"))),
    Row("subf", "subf A B…", "A minus all others", Some(("{{ subf 7.5 2 3 }}", "2.5"))),
    Row("divf", "divf A B…", "A divided by all others", Some(("{{ divf 10 2 4 }}", "1.25"))),
    Row("mulf", "mulf NUMBER…", "the product", Some(("{{ mulf 1.5 2 2 }}", "6"))),
    Row("maxf", "maxf NUMBER…", "the largest", Some(("{{ maxf 1 2.5 }}", "2.5"))),
    Row("minf", "minf NUMBER…", "the smallest", Some(("{{ minf 1.5 2 }}", "1.5"))),
];

pub(super) const CONVERSION: &[Row] = &[
    Row("atoi", "atoi TEXT", "a text as an integer, 0 if it is not one", Some((r#"{{ add (atoi "41") 1 }}"#, "42"))),
    Row("int", "int VALUE", "any value as an int", Some((r#"{{ int "5" }}"#, "5"))),
    Row("int64", "int64 VALUE", "any value as an int64", Some(("{{ int64 5.9 }}", "5"))),
    Row("float64", "float64 VALUE", "any value as a float", Some((r#"{{ float64 "1.5" }}"#, "1.5"))),
    Row(
        "toDecimal",
        "toDecimal VALUE",
        "the digits of a number, read as octal",
        Some((r#"{{ toDecimal "0777" }}"#, "511")),
    ),
];
