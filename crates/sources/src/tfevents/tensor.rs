//! The single number in a `TensorProto`, of any type that holds one.
//!
//! After <https://github.com/tensorflow/tensorflow/blob/v2.20.0/tensorflow/core/framework/tensor.proto>:
//! its bytes stand in `tensor_content`, or the number in the field of its type.

use crate::wire::{Damage, Field, Fields, Value, varint};

/// Types by their numbers in `types.proto`: how many bytes one takes, the field it stands in, and
/// how its bits are read.
struct Type {
    bytes: usize,
    field: u32,
    read: fn(u64) -> f64,
}

fn type_of(number: u64) -> Option<Type> {
    let (bytes, field, read): (usize, u32, fn(u64) -> f64) = match number {
        1 => (4, 5, |it| f64::from(f32::from_bits(it as u32))),
        2 => (8, 6, f64::from_bits),
        3 => (4, 7, |it| f64::from(it as i32)),
        4 => (1, 7, |it| f64::from(it as u8)),
        5 => (2, 7, |it| f64::from(it as i16)),
        6 => (1, 7, |it| f64::from(it as i8)),
        9 => (8, 10, |it| it.cast_signed() as f64),
        10 => (1, 11, |it| f64::from(u8::from(it != 0))),
        // bfloat16: the upper half of a float.
        14 => (2, 13, |it| f64::from(f32::from_bits(u32::from(it as u16) << 16))),
        17 => (2, 7, |it| f64::from(it as u16)),
        19 => (2, 13, |it| half(it as u16)),
        22 => (4, 16, |it| f64::from(it as u32)),
        23 => (8, 17, |it| it as f64),
        _ => return None,
    };
    Some(Type { bytes, field, read })
}

/// The number, or `None` where there is none or more than one.
pub fn number(tensor: &[u8]) -> Result<Option<f64>, Damage> {
    let (mut kind, mut one, mut content) = (None, true, [].as_slice());
    let mut fields = Fields::new(tensor);
    while let Some(Field { number, value, .. }) = fields.next()? {
        match (number, value) {
            (1, Value::Varint(it)) => kind = type_of(it),
            (2, Value::Bytes(shape)) => one = holds_one(shape)?,
            (4, Value::Bytes(it)) => content = it,
            _ => (),
        }
    }
    let Some(kind) = kind.filter(|_| one) else { return Ok(None) };
    if !content.is_empty() {
        if content.len() != kind.bytes {
            return Ok(None);
        }
        let bits = content.iter().rev().fold(0, |bits, &it| bits << 8 | u64::from(it));
        return Ok(Some((kind.read)(bits)));
    }
    // Numbers that are left out are zero, as TensorFlow itself reads them.
    let mut bits = 0;
    let mut fields = Fields::new(tensor);
    while let Some(Field { number, value, .. }) = fields.next()? {
        if number == kind.field {
            bits = match value {
                Value::Varint(it) | Value::Fixed64(it) => it,
                Value::Fixed32(it) => u64::from(it),
                Value::Bytes(packed) => match first_of(packed, kind.field) {
                    Some(it) => it,
                    None => return Ok(None),
                },
            };
        }
    }
    Ok(Some((kind.read)(bits)))
}

/// The first of numbers written one behind the other without their tags.
fn first_of(packed: &[u8], field: u32) -> Option<u64> {
    match field {
        _ if packed.is_empty() => Some(0),
        5 => packed.first_chunk().map(|it| u64::from(u32::from_le_bytes(*it))),
        6 => packed.first_chunk().map(|it| u64::from_le_bytes(*it)),
        _ => varint(packed, 0).map(|it| it.0),
    }
}

/// Whether a tensor of this shape has one element: no dimensions, or all of them one.
fn holds_one(shape: &[u8]) -> Result<bool, Damage> {
    let mut fields = Fields::new(shape);
    while let Some(Field { number, value, .. }) = fields.next()? {
        let (2, Value::Bytes(dimension)) = (number, value) else { continue };
        let mut size = 0;
        let mut fields = Fields::new(dimension);
        while let Some(Field { number, value, .. }) = fields.next()? {
            if let (1, Value::Varint(it)) = (number, value) {
                size = it;
            }
        }
        if size != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Half precision: five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (bits >> 10 & 0x1F, f64::from(bits & 0x3FF));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        0x1F if fraction == 0.0 => f64::INFINITY,
        0x1F => f64::NAN,
        it => (1024.0 + fraction) * 2_f64.powi(i32::from(it) - 25),
    };
    sign * size
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_of_every_kind() {
        // By NumPy: np.array([bits], np.uint16).view(np.float16).
        let cases = [
            (0x0000, 0.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x7BFF, 65504.0),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x03FF, 6.097_555_160_522_461e-5),
            (0x0400, 6.103_515_625e-5),
            (0x3555, 0.333_251_953_125),
            (0xFC00, f64::NEG_INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(half(bits), value, "{bits:#x}");
        }
        assert!(half(0x7E00).is_nan());
    }
}
