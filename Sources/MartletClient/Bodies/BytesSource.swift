import MartletConnections

/// A body's source that gives out bytes in memory, once.
actor BytesSource: BodySource {
    private var bytes: [UInt8]?

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    func next() async throws -> [UInt8]? {
        bytes.take()
    }
}
