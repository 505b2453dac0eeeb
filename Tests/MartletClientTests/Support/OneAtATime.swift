import Testing

/// Suites that measure time or need the machine: their tests run one after the other, so that they do not measure each
/// other.
@Suite("One at a time", .serialized)
enum OneAtATime {}
