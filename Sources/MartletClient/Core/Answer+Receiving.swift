import MartletConnections

extension Answer {
    /// As much of a short body as is there already, without waiting. Whether it is the whole, the exchange knows.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func receivedBody(_ length: Int) throws -> [UInt8] {
        do throws(ExchangeError) {
            return try exchange.readBodyAtOnce(upTo: length)
        } catch {
            exchange.finish()
            throw call.failure(error, attempts: attempts)
        }
    }
}
