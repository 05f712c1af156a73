//! Writes broken profiles: protobuf with nothing in the way of nonsense.

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

pub fn int(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value.cast_unsigned())].concat()
}

pub fn field(number: u64, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    claiming(number, body.len() as u64, body)
}

/// A field whose length is not what follows.
pub fn claiming(number: u64, len: u64, body: &[u8]) -> Vec<u8> {
    [&varint(number << 3 | 2), &varint(len), body].concat()
}

pub fn plane(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    field(1, [field(2, name), parts.concat()].concat())
}

pub fn line(id: i64, name: &str, timestamp_ns: i64, events: &[Vec<u8>]) -> Vec<u8> {
    field(3, [int(1, id), field(2, name), int(3, timestamp_ns), events.concat()].concat())
}

pub fn event(metadata: i64, offset_ps: i64, dur_ps: i64, stats: &[Vec<u8>]) -> Vec<u8> {
    let times = [int(2, offset_ps), int(3, dur_ps)].concat();
    field(4, [int(1, metadata), times, stats.concat()].concat())
}

pub fn event_name(id: i64, name: impl AsRef<[u8]>) -> Vec<u8> {
    field(4, [int(1, id), field(2, [int(1, id), field(2, name)].concat())].concat())
}

pub fn stat_name(id: i64, name: impl AsRef<[u8]>) -> Vec<u8> {
    field(5, [int(1, id), field(2, [int(1, id), field(2, name)].concat())].concat())
}

/// A stat of an event; field 6 makes it one of a plane.
pub fn stat(within: u64, id: i64, value: Vec<u8>) -> Vec<u8> {
    field(within, [int(1, id), value].concat())
}

pub const STATS: [&str; 26] = [
    "tf_op",
    "annotation",
    "level 0",
    "name",
    "hlo_op",
    "hlo_module",
    "hlo_category",
    "program_id",
    "kernel_details",
    "memcpy_details",
    "is_func",
    "tf_function_call",
    "cuda_graph_id",
    "_a",
    "correlation_id",
    "step_num",
    "_r",
    "id",
    "_pt",
    "_p",
    "_ct",
    "_c",
    "allocator_name",
    "bytes_allocated",
    "profile_start_time",
    "profile_stop_time",
];

pub const EVENTS: [&str; 11] = [
    "train",
    "PjitFunction(f)",
    "backend_compile",
    "MemoryAllocation",
    "ExecutorState::Process",
    "FunctionRun",
    "InstantiatedCapturedFunction::Run",
    "EagerExecute",
    "ncclAllReduce",
    "MemcpyH2D",
    "SaveV2:SaveV2",
];

pub const PLANES: [&str; 7] = [
    "/host:CPU",
    "/host:metadata",
    "Task Environment",
    "/device:GPU:0",
    "/device:TPU:0",
    "/device:CUSTOM:x",
    "",
];

/// Names for all of the above, by their place in the list.
pub fn names() -> Vec<u8> {
    let stats = (0..).zip(STATS).map(|(id, name)| stat_name(id, name));
    let events = (0..).zip(EVENTS).map(|(id, name)| event_name(id, name));
    stats.chain(events).collect::<Vec<_>>().concat()
}

/// Small and the same on every machine: xorshift.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
