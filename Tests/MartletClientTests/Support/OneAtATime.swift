import Testing

/// Suites that measure time or load the machine. Their tests run one at a time, so that they do not affect each other.
@Suite("One at a time", .serialized)
enum OneAtATime {}
