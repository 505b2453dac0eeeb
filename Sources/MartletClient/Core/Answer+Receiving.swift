import MartletConnections

extension Answer {
    /// The body, where it is short and there as a whole, without waiting; else what is there of it.
    ///
    /// - Parameters:
    ///   - limit: The longest body that is taken, in bytes.
    /// - Returns: What there is, and whether that is all; `nil` where nothing was tried.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func receivedBody(upTo limit: UInt64) throws -> (bytes: [UInt8], isWhole: Bool)? {
        guard codings.isEmpty, let length = announcedByteCount, length <= limit else { return nil }
        switch channel {
        case .cache(let body): return body.takeWhole().map { ($0, true) }
        case .exchange(let exchange):
            guard !exchange.isHeldBack(.down) else { return nil }
            do throws(ExchangeError) {
                let bytes = try exchange.readBodyAtOnce(upTo: Int(length))
                return (bytes, exchange.isFinished)
            } catch {
                exchange.finish()
                throw call.failure(error, attempts: attempts)
            }
        }
    }
}
