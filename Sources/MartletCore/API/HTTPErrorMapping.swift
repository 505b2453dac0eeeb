public import FoundationEssentials
import MartletTransport

/// An ``HTTPErrorMapping`` made of a closure, or of the type of the errors that a service sends.
///
/// ```swift
/// let api = try session.host("https://api.example.com/v2").with { $0.errorMapper = ErrorMapper.json(ServiceError.self) }
/// ```
public struct ErrorMapper: HTTPErrorMapping {
    private let map: @Sendable (HTTPError) async -> any Error

    /// A mapper that calls a closure.
    public init(_ map: @escaping @Sendable (HTTPError) async -> any Error) { self.map = map }

    /// What the closure makes of the error.
    public func error(for error: HTTPError) async -> any Error { await map(error) }

    /// Reads the body of an answer with an unacceptable status as JSON; where that fails, the error stays what it is.
    public static func json<Failure: Error & Decodable>(
        _ type: Failure.Type, using decoder: JSONDecoder = JSONDecoder()
    ) -> ErrorMapper {
        ErrorMapper { error in
            guard error.code == .unacceptableStatus, let body = error.exchange?.body else { return error }
            return (try? decoder.decode(type, from: Data(body))) ?? error
        }
    }
}

/// Turns the failures of calls into a service's own errors.
///
/// It is set for a session (``SessionConfiguration/errorMapper``) or a host (``HTTPHost/errorMapper``). An error about the
/// answer, such as one of the code `.unacceptableStatus`, carries the exchange in ``HTTPError/exchange``: its head, and its
/// body as far as it was collected.
public protocol HTTPErrorMapping: Sendable {
    /// What is thrown in place of an error; the error itself where there is nothing better to say.
    ///
    /// It runs after all retries, once for each call that fails. `CancellationError` does not come here, nor do errors of the
    /// caller's own, which middleware, encoders, decoders and closures throw.
    ///
    /// It runs in a task of its own, and may make calls. When the call is cancelled, or one second after its total clock ran
    /// out, the task is cancelled, and the call ends with the error as it was.
    func error(for error: HTTPError) async -> any Error
}

extension SessionSettings {
    /// What is thrown in place of an error.
    /// - Parameter userCode: That of the call that failed; `nil` where there was none.
    package func mapped(_ error: any Error, _ userCode: @autoclosure () -> UserCode? = nil) async -> any Error
    {
        guard let mapper = configuration.errorMapper, let error = error as? HTTPError else { return error }
        let mapped =
            if let userCode = userCode() {
                await userCode.tell { await mapper.error(for: error) }
            } else {
                try? await waitUnlessCancelled { await mapper.error(for: error) }
            }
        return mapped ?? error
    }
}
