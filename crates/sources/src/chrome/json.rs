//! Walks JSON where it lies, and forgives what writers get wrong: only as much is looked at as is
//! needed to find where a value ends.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Why a value could not be walked to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The bytes end inside it.
    Cut,
    /// At this place stands what cannot stand there.
    Bad(usize),
}

/// A place in some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// The next byte that is no blank; it is not passed.
    #[inline]
    pub fn peek(&mut self) -> Result<u8, Stop> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Stop::Cut)
    }

    /// Passes this byte, and blanks before it.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        match self.peek()? {
            it if it == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(Stop::Bad(self.at)),
        }
    }

    /// Whether this byte comes next; it is passed then.
    #[inline]
    pub fn takes(&mut self, byte: u8) -> Result<bool, Stop> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// A text without its quotes, escapes left as they are.
    #[inline]
    pub fn string(&mut self) -> Result<&'a [u8], Stop> {
        self.expect(b'"')?;
        let start = self.at;
        // Most keys and many names end soon: a search costs more than looking at each byte.
        for &byte in self.bytes.get(start..).unwrap_or_default().iter().take(SHORT) {
            match byte {
                b'"' => {
                    let text = self.bytes.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => break,
                _ => self.at += 1,
            }
        }
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(n) = memchr2(b'"', b'\\', rest) else {
                self.at = self.bytes.len();
                return Err(Stop::Cut);
            };
            self.at += n;
            if self.bytes.get(self.at) == Some(&b'"') {
                let text = self.bytes.get(start..self.at).unwrap_or_default();
                self.at += 1;
                return Ok(text);
            }
            self.at += 2;
        }
    }

    /// The bytes of a value, whatever it is.
    #[inline]
    pub fn value(&mut self) -> Result<&'a [u8], Stop> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => _ = self.string()?,
            b'{' | b'[' => self.nested()?,
            _ => self.plain()?,
        }
        Ok(self.bytes.get(start..self.at).unwrap_or_default())
    }

    /// A number or a word, `NaN` among them.
    #[inline]
    fn plain(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t' => break,
                b'"' | b'{' | b'[' => return Err(Stop::Bad(self.at)),
                _ => self.at += 1,
            }
        }
        if self.at == self.bytes.len() {
            return Err(Stop::Cut);
        }
        if self.at == start { Err(Stop::Bad(start)) } else { Ok(()) }
    }

    /// An object or array: as deep as it likes, since only brackets are counted.
    fn nested(&mut self) -> Result<(), Stop> {
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(());
                    }
                }
                _ => (),
            }
            self.at += 1;
        }
        Err(Stop::Cut)
    }

    /// The next key of the object that the cursor is in; `None` at its end, which is passed.
    /// `first` tells whether no key came before.
    #[inline]
    pub fn key(&mut self, first: bool) -> Result<Option<&'a [u8]>, Stop> {
        if self.takes(b'}')? {
            return Ok(None);
        }
        if !first {
            self.expect(b',')?;
            // A comma behind the last one.
            if self.takes(b'}')? {
                return Ok(None);
            }
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(Some(key))
    }
}

/// As long are most keys.
const SHORT: usize = 20;

/// A short key as a number, so that it is compared at once; 0 for a longer one.
#[inline]
pub const fn packed(key: &[u8]) -> u128 {
    if key.len() > 16 {
        return 0;
    }
    let (mut number, mut at) = (0, 0);
    while at < key.len() {
        number = number << 8 | key[at] as u128;
        at += 1;
    }
    number
}

/// The fields of an object's bytes, as far as they can be read.
pub fn fields<'a>(object: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) {
    let mut cursor = Cursor::new(object, 0);
    if cursor.expect(b'{').is_err() {
        return;
    }
    let mut first = true;
    while let Ok(Some(key)) = cursor.key(first) {
        let Ok(value) = cursor.value() else { return };
        each(key, value);
        first = false;
    }
}

/// The text of a value: that of a string without its quotes and escapes, of others as it stands.
pub fn text(value: &[u8]) -> Cow<'_, str> {
    match value {
        [b'"', inner @ .., b'"'] => unescaped(inner),
        _ => String::from_utf8_lossy(value),
    }
}

/// A string's inside without its escapes.
pub fn unescaped(inner: &[u8]) -> Cow<'_, str> {
    if memchr(b'\\', inner).is_none() {
        return String::from_utf8_lossy(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let [escape, behind @ ..] = rest else { break };
        rest = behind;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let mut code = code_unit(&mut rest);
                if let Some(high @ 0xD800..=0xDBFF) = code
                    && let [b'\\', b'u', low @ ..] = rest
                {
                    rest = low;
                    code = code_unit(&mut rest)
                        .filter(|it| (0xDC00..=0xDFFF).contains(it))
                        .map(|low| 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00));
                }
                let letter = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => out.push(*other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Four hexadecimal digits, which are passed.
fn code_unit(rest: &mut &[u8]) -> Option<u32> {
    let (digits, behind) = rest.split_at_checked(4)?;
    let unit = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    *rest = behind;
    Some(unit)
}

/// A whole number, quoted or not.
pub fn whole(value: &[u8]) -> Option<i64> {
    let value = unquoted(value);
    // As almost all are: some digits, too few to overflow.
    if (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit) {
        return Some(value.iter().fold(0, |sum, it| sum * 10 + i64::from(it - b'0')));
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A float: for figures that are no times.
pub fn float(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(unquoted(value)).ok()?.parse().ok().filter(|it: &f64| it.is_finite())
}

pub fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] => inner,
        _ => value,
    }
}

/// Decimal microseconds, exactly: whole ones, and picoseconds behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros {
    pub whole: i64,
    pub ps: i64,
}

const PS_PER_US: i64 = 1_000_000;

impl Micros {
    /// Reads `1732107141551429.079`, `5e-05` or `"12"`. What is behind the picosecond is rounded.
    ///
    /// Never by way of a float: at today's Unix time one steps by 250 ns.
    pub fn parse(value: &[u8]) -> Option<Micros> {
        Micros::plain(value).or_else(|| Micros::any(unquoted(value)))
    }

    /// As almost all are: digits, a point, at most six digits.
    #[inline]
    fn plain(value: &[u8]) -> Option<Micros> {
        let mut whole = 0_i64;
        let mut digits = value.iter();
        let mut n_digits = 0;
        for &byte in digits.by_ref() {
            // More do not fit; the other way counts them.
            if n_digits == 18 && byte != b'.' {
                return None;
            }
            match byte {
                b'0'..=b'9' => whole = whole * 10 + i64::from(byte - b'0'),
                b'.' if n_digits > 0 => {
                    let fraction = digits.as_slice();
                    if fraction.is_empty() || fraction.len() > 6 {
                        return None;
                    }
                    let mut ps = 0;
                    for &byte in fraction {
                        if !byte.is_ascii_digit() {
                            return None;
                        }
                        ps = ps * 10 + i64::from(byte - b'0');
                    }
                    for _ in fraction.len()..6 {
                        ps *= 10;
                    }
                    return Some(Micros { whole, ps });
                }
                _ => return None,
            }
            n_digits += 1;
        }
        (n_digits > 0).then_some(Micros { whole, ps: 0 })
    }

    fn any(text: &[u8]) -> Option<Micros> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut mantissa = 0_i128;
        // Powers of ten that the mantissa still has to be multiplied by.
        let mut power = 0_i64;
        let (mut any, mut behind_point) = (false, false);
        let mut bytes = text.iter();
        loop {
            match bytes.next() {
                None => break,
                Some(&byte @ b'0'..=b'9') => {
                    any = true;
                    if mantissa < i128::MAX / 100 {
                        mantissa = mantissa * 10 + i128::from(byte - b'0');
                        power -= i64::from(behind_point);
                    } else {
                        power += i64::from(!behind_point);
                    }
                }
                Some(b'.') if !behind_point => behind_point = true,
                Some(b'e' | b'E') => {
                    let exponent = std::str::from_utf8(bytes.as_slice()).ok()?;
                    let exponent: i64 = exponent.parse().ok()?;
                    power = power.checked_add(exponent)?;
                    break;
                }
                Some(_) => return None,
            }
        }
        if !any {
            return None;
        }
        let power = power.checked_add(6)?;
        let ps = if mantissa == 0 {
            0
        } else if power >= 0 {
            mantissa.checked_mul(10_i128.checked_pow(u32::try_from(power).ok()?)?)?
        } else {
            let divisor = u32::try_from(power.checked_neg()?).ok();
            match divisor.and_then(|it| 10_i128.checked_pow(it)) {
                Some(divisor) => mantissa / divisor + i128::from(mantissa % divisor >= divisor / 2),
                None => 0,
            }
        };
        let ps = if negative { -ps } else { ps };
        let whole = i64::try_from(ps.div_euclid(i128::from(PS_PER_US))).ok()?;
        Some(Micros { whole, ps: ps.rem_euclid(i128::from(PS_PER_US)) as i64 })
    }

    /// Picoseconds since a whole number of microseconds.
    #[inline]
    pub fn ps_since(self, base_us: i64) -> Option<i64> {
        self.whole.checked_sub(base_us)?.checked_mul(PS_PER_US)?.checked_add(self.ps)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Micros, Stop, fields, text};

    #[test]
    fn times_are_exact() {
        let ps = |text: &str, base| Micros::parse(text.as_bytes()).and_then(|it| it.ps_since(base));
        assert_eq!(ps("1732107141551429.079", 1_732_107_141_551_429), Some(79_000));
        assert_eq!(ps("4458676522690.655", 4_458_676_522_690), Some(655_000));
        assert_eq!(ps("12", 0), Some(12_000_000));
        assert_eq!(ps("\"12.5\"", 0), Some(12_500_000));
        assert_eq!(ps("5e-05", 0), Some(50));
        assert_eq!(ps("1.5E3", 0), Some(1_500_000_000));
        assert_eq!(ps("-0.000001", 0), Some(-1));
        assert_eq!(ps("-1.25", 0), Some(-1_250_000));
        // What Python makes of 26501.2: nobody meant the rest.
        assert_eq!(ps("26501.200000000001", 0), Some(26_501_200_000));
        assert_eq!(ps("0.0000004999", 0), Some(0));
        assert_eq!(ps("0.0000005", 0), Some(1));
        for no in ["", ".", "-", "NaN", "Infinity", "1e308", "1e", "0x10", "null", "1.2.3", "\""] {
            assert_eq!(ps(no, 0), None, "{no}");
        }
        assert_eq!(ps("0e999999", 0), Some(0));
        assert_eq!(ps("1e-999999", 0), Some(0));
        assert_eq!(ps("99999999999999999999", 0), None, "further than an i64 of picoseconds");
    }

    #[test]
    fn values_end_where_they_end() {
        let value = |text: &'static str| Cursor::new(text.as_bytes(), 0).value();
        assert_eq!(value(r#" {"a":"}\"","b":[1,{}]} ,"#), Ok(&br#"{"a":"}\"","b":[1,{}]}"#[..]));
        assert_eq!(value("NaN}"), Ok(&b"NaN"[..]));
        assert_eq!(value("[[1,2"), Err(Stop::Cut));
        assert_eq!(value("\"abc\\"), Err(Stop::Cut));
        assert_eq!(value("12"), Err(Stop::Cut), "more digits may follow");
        assert_eq!(value("}"), Err(Stop::Bad(0)));
        let deep = "[".repeat(1_000_000);
        assert_eq!(Cursor::new(deep.as_bytes(), 0).value(), Err(Stop::Cut));
    }

    #[test]
    fn texts_lose_their_escapes() {
        assert_eq!(text(br#""a\"b\\c\n\u00e9\ud83d\ude00""#), "a\"b\\c\né😀");
        assert_eq!(text(br#""\ud83d\u0041""#), "\u{FFFD}");
        assert_eq!(text(br#""\u12""#), "\u{FFFD}12");
        assert_eq!(text(b"[1,2]"), "[1,2]");
        let mut keys = Vec::new();
        fields(br#"{"a": 1, "b": [2,3], }"#, |key, value| keys.push((key, value)));
        assert_eq!(keys, [(&b"a"[..], &b"1"[..]), (b"b", b"[2,3]")]);
    }
}
