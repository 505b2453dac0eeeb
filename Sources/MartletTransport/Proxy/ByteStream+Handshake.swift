extension ByteStream {
    /// Reads bytes, at most so many, and waits for the first of them.
    ///
    /// For the short exchanges before a tunnel stands, of which not a byte too much may be read.
    /// - Parameter count: At least 1.
    /// - Returns: The bytes, at least one; `nil` at the end of the stream.
    /// - Throws: `.timedOut`, `.interrupted`, and what reading throws.
    package func receive(
        atMost count: Int, until deadline: MonotonicTime
    ) async throws(TransportError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: max(1, count))
        while true {
            // Looked at here too: a peer that always sends a little more never makes the wait reach it.
            if MonotonicTime.now() >= deadline { throw .timedOut }
            var span = buffer.mutableSpan
            let outcome = try unsafe span.withUnsafeMutableBytes { raw throws(TransportError) in
                unsafe try read(into: raw)
            }
            switch outcome {
            case .bytes(let received):
                buffer.removeLast(buffer.count - received)
                return buffer
            case .wouldBlock: try await waitUntilReadable(until: deadline)
            case .endOfStream: return nil
            }
        }
    }

    /// Writes all of some bytes.
    /// - Throws: `.timedOut`, `.interrupted`, and what writing throws.
    package func send(_ bytes: [UInt8], until deadline: MonotonicTime) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try write(bytes, from: offset)
            offset += count
            if count == 0 { try await waitUntilWritable(until: deadline) }
        }
    }
}
