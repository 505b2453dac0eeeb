public import FoundationEssentials

/// A mapper from the errors of failed calls to a service's own errors.
///
/// ```swift
/// let api = try session.host(base) { $0.errors = .decoding(APIProblem.self) }
/// ```
///
/// A mapper is set for a session (``SessionConfiguration/errors``) or a host (``HTTPHost/errors``). It receives each
/// ``HTTPError`` of that session's or host's calls once, after all retries, and the errors of `HTTPExchange.decode` and
/// ``HTTPExchange/validated()``. It does not receive `CancellationError` or the errors of the program's middleware,
/// encoders and closures. An error about a response, such as one with the code `.unacceptableStatus`, has the head and
/// the collected part of the body in ``HTTPError/exchange``.
public struct ErrorMapper: Sendable {
    private let map: @Sendable (HTTPError) -> any Error

    /// Creates a mapper that calls a closure. The closure returns the error to throw, which may be the one it receives.
    /// It must not block. Errors that occur when the closure decodes ``HTTPError/exchange`` are not passed to it.
    public init(_ map: @escaping @Sendable (HTTPError) -> any Error) { self.map = map }

    /// Decodes the body of a response that is not 2xx and throws the value; if decoding fails, the ``HTTPError``. The
    /// body may be `application/problem+json` (RFC 9457) or any other JSON: its content type is not checked.
    /// - Parameter decoder: The decoder of the body; `nil` (the default) for the decoder of the session or host.
    public static func decoding<Failure: Error & Decodable>(_ type: Failure.Type, using decoder: JSONDecoder? = nil)
        -> ErrorMapper
    { decoding(type, using: decoder) { failure, _ in failure } }

    /// Decodes the body of a response that is not 2xx, and passes the value to a closure. The call throws the error
    /// that the closure returns, such as a case of an enum. If the body cannot be decoded, the ``HTTPError`` is thrown.
    ///
    /// ```swift
    /// $0.errors = .decoding(Problem.self) { problem, error in
    ///     switch problem.type {
    ///     case "/problems/quota": ServiceError.quotaExceeded(problem.title)
    ///     default: error
    ///     }
    /// }
    /// ```
    /// - Parameter make: Returns the error to throw, which may be the ``HTTPError``. It must not block.
    public static func decoding<Problem: Decodable & SendableMetatype>(
        _ type: Problem.Type, using decoder: JSONDecoder? = nil,
        _ make: @escaping @Sendable (_ problem: Problem, _ error: HTTPError) -> any Error
    ) -> ErrorMapper {
        ErrorMapper { error in
            guard let exchange = error.exchange, !(200...299).contains(exchange.statusCode) else { return error }
            let decoder = decoder.map { BodyDecoder.json($0) } ?? exchange.coding.decoder
            let problem = try? decoder.value(type, from: Data(exchange.body))
            return problem.map { make($0, error) } ?? error
        }
    }

    /// Passes an ``HTTPError`` to the closure, unless a mapper has received it before. Returns other errors unchanged.
    func error(for error: any Error) -> any Error {
        guard var error = error as? HTTPError, !error.isMapped else { return error }
        error.isMapped = true
        error.exchange?.mapsErrors = false
        return map(error)
    }
}

extension SessionSettings {
    /// Returns the error that the session's mapper returns for `error`; without a mapper, `error` itself.
    package func mapped(_ error: any Error) -> any Error { coding.mapped(error) }
}
