//! What is said to a profiler server, and what it answers.
//!
//! The fields of `tensorflow.ProfileRequest` and `tensorflow.ProfileOptions` that matter here, by
//! the numbers of `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto`.
//! The answer, which can be larger than memory, is never a message of ours: it is taken apart as
//! it comes, and the profile inside goes straight to a file.

use std::io::{self, Write};

/// Asks for one profile.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProfileRequest {
    #[prost(uint64, tag = "1")]
    pub duration_ms: u64,
    #[prost(uint64, tag = "2")]
    pub max_events: u64,
    #[prost(message, optional, tag = "4")]
    pub opts: Option<ProfileOptions>,
    #[prost(string, tag = "6")]
    pub session_id: String,
    #[prost(string, tag = "7")]
    pub host_name: String,
    /// Send the profile back instead of writing it to the server's own disk.
    #[prost(bool, tag = "9")]
    pub emit_xspace: bool,
}

/// What is recorded, and when.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProfileOptions {
    #[prost(bool, tag = "1")]
    pub include_dataset_ops: bool,
    #[prost(uint32, tag = "2")]
    pub host_tracer_level: u32,
    #[prost(uint32, tag = "3")]
    pub device_tracer_level: u32,
    #[prost(uint32, tag = "4")]
    pub python_tracer_level: u32,
    /// Without it a server takes its own defaults instead of all of these.
    #[prost(uint32, tag = "5")]
    pub version: u32,
    #[prost(bool, tag = "7")]
    pub enable_hlo_proto: bool,
    /// Unix time at which to start, by the server's clock; in the past or 0: at once.
    #[prost(uint64, tag = "8")]
    pub start_timestamp_ns: u64,
    #[prost(uint64, tag = "9")]
    pub duration_ms: u64,
}

/// Fields of `tensorflow.ProfileResponse`.
mod field {
    /// Files the server made of the profile; it does so where it is not asked for the profile.
    pub const TOOL_DATA: u64 = 6;
    pub const EMPTY_TRACE: u64 = 7;
    pub const XSPACE: u64 = 8;
}

/// Takes an answer apart as its bytes come; the profile in it goes to `profile`.
///
/// ```text
/// answer   message*                     a stream of them is joined, as protobuf joins messages
/// message  compressed? length field*    5 bytes, then `length` bytes
/// field    key (number | [length] bytes)
/// ```
#[derive(Debug)]
pub struct Answer<W> {
    profile: W,
    /// Most bytes of all messages together.
    most: u64,
    /// Bytes of messages announced so far.
    announced: u64,
    state: State,
    /// A head that is not complete yet.
    head: Vec<u8>,
    /// What is left of the message.
    left: u64,
    pub seen: Seen,
}

#[derive(Debug, Clone, Copy)]
enum State {
    MessageHead,
    FieldHead,
    /// The rest of a field of the profile.
    Copying(u64),
    Skipping(u64),
}

/// What was in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Bytes of messages that have come.
    pub bytes: u64,
    pub profile_bytes: u64,
    /// The server says that nothing was recorded.
    pub empty_trace: bool,
    /// There were files of tools.
    pub tool_data: bool,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("the answer is {bytes} bytes or more")]
    TooLarge { bytes: u64 },
    #[error("{0}")]
    Malformed(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// gRPC's head of a message.
const MESSAGE_HEAD: usize = 5;
/// The longest number of protobuf.
const LONGEST_NUMBER: usize = 10;

impl<W: Write> Answer<W> {
    pub fn new(profile: W, most: u64) -> Answer<W> {
        let (state, head) = (State::MessageHead, Vec::new());
        Answer { profile, most, announced: 0, state, head, left: 0, seen: Seen::default() }
    }

    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), AnswerError> {
        while let Some((&first, rest)) = bytes.split_first() {
            match self.state {
                State::MessageHead => {
                    self.head.push(first);
                    bytes = rest;
                    self.message_head()?;
                }
                State::FieldHead => {
                    self.head.push(first);
                    bytes = rest;
                    self.seen.bytes += 1;
                    self.left -= 1;
                    self.field_head()?;
                }
                State::Copying(n) | State::Skipping(n) => {
                    let now = usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
                    let (part, rest) = bytes.split_at(now);
                    bytes = rest;
                    let n = n - now as u64;
                    self.seen.bytes += now as u64;
                    self.left -= now as u64;
                    if matches!(self.state, State::Copying(_)) {
                        self.profile.write_all(part)?;
                        self.seen.profile_bytes += now as u64;
                        self.state = State::Copying(n);
                    } else {
                        self.state = State::Skipping(n);
                    }
                    if n == 0 {
                        self.next_field();
                    }
                }
            }
        }
        Ok(())
    }

    /// The answer has ended; gives back where the profile went.
    pub fn finish(self) -> Result<(W, Seen), AnswerError> {
        match self.state {
            State::MessageHead if self.head.is_empty() => Ok((self.profile, self.seen)),
            _ => Err(AnswerError::Malformed("the answer ends in the middle of a message")),
        }
    }

    fn message_head(&mut self) -> Result<(), AnswerError> {
        let &[compressed, a, b, c, d] = self.head.as_slice() else {
            debug_assert!(self.head.len() < MESSAGE_HEAD);
            return Ok(());
        };
        self.head.clear();
        if compressed != 0 {
            return Err(AnswerError::Malformed(
                "the answer is compressed, which was not asked for",
            ));
        }
        self.left = u64::from(u32::from_be_bytes([a, b, c, d]));
        self.announced += self.left;
        if self.announced > self.most {
            return Err(AnswerError::TooLarge { bytes: self.announced });
        }
        self.next_field();
        Ok(())
    }

    fn next_field(&mut self) {
        self.state = if self.left == 0 { State::MessageHead } else { State::FieldHead };
    }

    fn field_head(&mut self) -> Result<(), AnswerError> {
        let malformed = Err(AnswerError::Malformed("the answer is no ProfileResponse"));
        let (key, rest) = match number(&self.head) {
            Number::Is(key, rest) => (key, rest),
            Number::Unfinished if self.left > 0 => return Ok(()),
            _ => return malformed,
        };
        let (field, kind) = (key >> 3, key & 7);
        if field == 0 {
            return malformed;
        }
        let skip = match kind {
            0 | 2 => match (kind, number(rest)) {
                (0, Number::Is(value, _)) => {
                    if field == field::EMPTY_TRACE {
                        self.seen.empty_trace = value != 0;
                    }
                    0
                }
                (_, Number::Is(length, _)) => length,
                (_, Number::Unfinished) if self.left > 0 => return Ok(()),
                _ => return malformed,
            },
            1 => 8,
            5 => 4,
            _ => return malformed,
        };
        self.head.clear();
        if skip > self.left {
            return malformed;
        }
        match (field, kind, skip) {
            (.., 0) => self.next_field(),
            (field::XSPACE, 2, _) => self.state = State::Copying(skip),
            _ => {
                self.seen.tool_data |= field == field::TOOL_DATA;
                self.state = State::Skipping(skip);
            }
        }
        Ok(())
    }
}

enum Number<'a> {
    Is(u64, &'a [u8]),
    Unfinished,
    TooLong,
}

/// A varint, and what follows it.
fn number(bytes: &[u8]) -> Number<'_> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(LONGEST_NUMBER) {
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Number::Is(value, &bytes[at + 1..]);
        }
    }
    if bytes.len() >= LONGEST_NUMBER { Number::TooLong } else { Number::Unfinished }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::{Answer, AnswerError, Seen};

    /// The answer as another implementation of protobuf writes it.
    #[derive(Clone, PartialEq, Message)]
    struct Response {
        #[prost(message, repeated, tag = "6")]
        tool_data: Vec<Tool>,
        #[prost(bool, tag = "7")]
        empty_trace: bool,
        #[prost(bytes = "vec", tag = "8")]
        xspace: Vec<u8>,
        #[prost(fixed64, tag = "20")]
        later: u64,
        #[prost(fixed32, tag = "21")]
        later_still: u32,
        #[prost(uint64, tag = "300")]
        much_later: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Tool {
        #[prost(string, tag = "1")]
        name: String,
    }

    fn response() -> Response {
        Response {
            tool_data: vec![Tool { name: "overview".to_owned() }],
            empty_trace: true,
            xspace: (0..=255).cycle().take(1000).collect(),
            later: 7,
            later_still: 8,
            much_later: u64::MAX,
        }
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap();
        [&[0], length.to_be_bytes().as_slice(), message].concat()
    }

    fn take(bytes: &[u8], cut: usize, most: u64) -> Result<(Vec<u8>, Seen), AnswerError> {
        let mut answer = Answer::new(Vec::new(), most);
        for part in bytes.chunks(cut) {
            answer.feed(part)?;
        }
        answer.finish()
    }

    #[test]
    fn the_profile_comes_out_however_the_answer_is_cut() {
        let response = response();
        let message = response.encode_to_vec();
        for cut in [1, 2, 3, 7, 100, 1 << 20] {
            let (profile, seen) = take(&framed(&message), cut, 1 << 20).unwrap();
            assert_eq!(profile, response.xspace, "in parts of {cut}");
            let expected = Seen {
                bytes: message.len() as u64,
                profile_bytes: 1000,
                empty_trace: true,
                tool_data: true,
            };
            assert_eq!(seen, expected, "in parts of {cut}");
        }
    }

    /// A disk with room for so many bytes, which takes three at a time and is interrupted.
    struct SmallDisk {
        room: usize,
        taken: Vec<u8>,
        is_interrupted: bool,
    }

    impl std::io::Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.is_interrupted = !self.is_interrupted;
            if self.is_interrupted {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let n = bytes.len().min(3).min(self.room - self.taken.len());
            self.taken.extend_from_slice(&bytes[..n]);
            if n == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(n) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_may_be_slow_to_take_it_and_full_at_any_byte() {
        let response = response();
        let message = framed(&response.encode_to_vec());
        for room in (0..1000).step_by(7).chain([999, 1000]) {
            let disk = SmallDisk { room, taken: Vec::new(), is_interrupted: false };
            let mut answer = Answer::new(disk, 1 << 20);
            let fed = message.chunks(64).try_for_each(|it| answer.feed(it));
            match (room, fed) {
                (1000, Ok(())) => assert_eq!(answer.finish().unwrap().0.taken, response.xspace),
                (..1000, Err(AnswerError::Io(it))) => {
                    assert_eq!(it.kind(), std::io::ErrorKind::StorageFull);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_stream_of_answers_is_joined() {
        let part = Response { xspace: b"part".to_vec(), ..Response::default() }.encode_to_vec();
        let (profile, _) = take(&[framed(&part), framed(&part)].concat(), 5, 1 << 20).unwrap();
        assert_eq!(profile, b"partpart");
    }

    #[test]
    fn nothing_is_an_answer_too() {
        assert_eq!(take(&framed(&[]), 1, 10).unwrap(), (Vec::new(), Seen::default()));
        assert_eq!(take(&[], 1, 10).unwrap(), (Vec::new(), Seen::default()));
    }

    #[test]
    fn the_limit_holds_before_anything_is_stored() {
        let message = framed(&response().encode_to_vec());
        let announced = message.len() as u64 - 5;
        assert!(take(&message, 64, announced).is_ok());
        let mut answer = Answer::new(Vec::new(), announced - 1);
        let error = answer.feed(&message).unwrap_err();
        assert!(matches!(error, AnswerError::TooLarge { bytes } if bytes == announced));
        assert_eq!(answer.seen, Seen::default());
        // And over a stream that never ends.
        let mut answer = Answer::new(std::io::sink(), 1 << 16);
        let fed = (0..1000).map_while(|_| answer.feed(&message).ok()).count() as u64;
        assert!(fed * announced <= 1 << 16 && fed > 0);
    }

    #[test]
    fn every_prefix_is_cut_off_and_none_panics() {
        let message = framed(&response().encode_to_vec());
        for end in 1..message.len() {
            assert!(take(&message[..end], 16, 1 << 20).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn garbage_is_no_answer() {
        let lie = |body: &[u8]| take(&framed(body), 16, 1 << 20).is_err();
        assert!(take(&[1, 0, 0, 0, 1, 8], 16, 100).is_err(), "compressed");
        assert!(lie(&[0x42, 200]), "a field that is cut off inside its length");
        assert!(lie(&[0x42, 5, 1, 2]), "a field longer than its message");
        assert!(lie(&[0x43]), "a group");
        assert!(lie(&[0x00, 1]), "field 0");
        assert!(lie(&[0xFF; 11]), "a number without an end");
        assert!(lie(&[[0x42].as_slice(), &[0xFF; 9], &[1]].concat()), "2^64 - 1 bytes");
    }
}
