public import MartletCore

extension ResponseBody {
    /// The values of a body of JSON lines (NDJSON) as they arrive, as an `AsyncSequence` that reads on demand.
    ///
    /// Each line is one value; blank lines are skipped. The body can be read in one pass.
    public struct JSONLines<Value: Decodable & Sendable>: AsyncSequence, Sendable {
        /// A value of one line.
        public typealias Element = Value

        fileprivate let lines: Lines
        fileprivate let decoder: PartDecoder

        /// One pass over the values.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var lines: Lines.Iterator
            fileprivate let decoder: PartDecoder
            fileprivate var number: UInt64 = 0

            /// Returns the next value; `nil` at the end. Cancelling the task closes the connection immediately.
            /// - Throws: An ``HTTPError``: that of the body, `.limitExceeded` for a line above the limit, or
            ///   `.decodingFailed` for an invalid line, after which the next can be read; `CancellationError`.
            public mutating func next() async throws -> Value? {
                while let line = try await lines.nextBytes() {
                    number += 1
                    if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { continue }
                    return try decoder.value(Value.self, from: line, "line \(number) of the body")
                }
                return nil
            }

            /// Returns the next value; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> Value? {
                try await next()
            }
        }

        /// Returns a pass that starts with the bytes that were not read yet.
        public func makeAsyncIterator() -> Iterator { Iterator(lines: lines.makeAsyncIterator(), decoder: decoder) }
    }

    /// Returns the values of JSON lines, decoded by the host's decoder or ``SessionConfiguration/decoder``.
    /// - Parameter limit: The maximum size of a line; 16 MiB by default. A longer line closes the connection.
    public func jsonLines<Value>(of type: Value.Type, upTo limit: ByteCount = .mebibytes(16)) -> JSONLines<Value> {
        JSONLines(lines: lines(upTo: limit), decoder: PartDecoder(self))
    }
}
