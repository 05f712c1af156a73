//! Makes protobuf bytes of fields: just enough of the wire format to write an XSpace.
//!
//! Deliberately shares nothing with the reader in `sources`, so that a mistake
//! there cannot cancel itself out here.

/// The bytes of one message, appended to field by field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

impl Message {
    /// A field of type uint64.
    pub(crate) fn uint(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        varint(&mut self.bytes, value);
    }

    /// A field of type int64: a negative value takes ten bytes, as in protobuf.
    pub(crate) fn int(&mut self, field: u64, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    pub(crate) fn double(&mut self, field: u64, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(crate) fn fixed64(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn fixed32(&mut self, field: u64, value: u32) {
        self.tag(field, FIXED32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A string, bytes, or an embedded message.
    pub(crate) fn data(&mut self, field: u64, value: &[u8]) {
        self.data_header(field, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// The tag and length of a field whose content is written by someone else.
    pub(crate) fn data_header(&mut self, field: u64, len: u64) {
        self.tag(field, LENGTH);
        varint(&mut self.bytes, len);
    }

    fn tag(&mut self, field: u64, wire_type: u64) {
        varint(&mut self.bytes, field << 3 | wire_type);
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn bytes_are_those_of_the_protobuf_documentation() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.data(2, b"testing");
        assert_eq!(message.bytes, b"\x08\x96\x01\x12\x07testing");
    }

    #[test]
    fn negative_int_takes_ten_bytes() {
        let mut message = Message::default();
        message.int(1, -2);
        assert_eq!(message.bytes, b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}
