import MartletTransport

extension ByteStream {
    /// Tries to read, and appends what came to an array.
    /// - Parameter byteCount: The most bytes to take.
    func read(upTo byteCount: Int, appendingTo bytes: inout [UInt8]) throws(TransportError) -> ReadOutcome {
        let result = unsafe withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 16) {
            buffer -> Result<ReadOutcome, TransportError> in
            do throws(TransportError) {
                let outcome = unsafe try read(into: buffer)
                if case .bytes(let count) = outcome {
                    unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
                return .success(outcome)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
