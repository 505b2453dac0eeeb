import MartletConnections

extension Answer {
    /// As much of a short body as is there already, without waiting. Whether it is the whole, the exchange knows.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func receivedBody(_ length: Int) throws -> [UInt8] {
        do throws(ExchangeError) {
            return try exchange.readBodyAtOnce(upTo: length)
        } catch {
            exchange.finish()
            if case .cancelled = error.cause { throw CancellationError() }
            throw HTTPError(error, call: call, attempts: attempts)
        }
    }
}
