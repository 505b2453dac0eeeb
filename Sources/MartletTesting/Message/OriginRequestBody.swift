/// The body of a request: chunks of bytes as they arrive, without chunked framing.
///
/// It is read from the connection as it is asked for, so a handler that stops asking stops the sender. One
/// reader may read it, once, until the response is complete.
public struct OriginRequestBody: AsyncSequence, Sendable {
    /// A piece of the body; never empty.
    public typealias Element = [UInt8]

    private let reader: RequestReader
    private let serial: Int

    /// The length that Content-Length declares; `nil` for a chunked body, 0 for none.
    public let declaredLength: UInt64?

    init(reader: RequestReader, serial: Int, declaredLength: UInt64?) {
        self.reader = reader
        self.serial = serial
        self.declaredLength = declaredLength
    }

    /// The fields behind a chunked body; none before its end.
    public var trailers: OriginFields { reader.trailers(serial: serial) }

    /// Starts reading, or goes on where an earlier iterator stopped.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: reader, serial: serial)
    }

    /// Reads the body piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: RequestReader
        fileprivate let serial: Int

        /// The next piece; `nil` at the end.
        /// - Throws: ``OriginError/malformedRequest(_:)``, ``OriginError/disconnected(_:)``,
        ///   ``OriginError/bodyNotReadable``.
        public mutating func next() async throws -> [UInt8]? {
            try await reader.nextChunk(serial: serial)
        }
    }
}
