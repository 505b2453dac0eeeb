public import FoundationEssentials

/// An ``HTTPErrorMapping`` made of a closure, or of the type of the errors that a service sends.
///
/// ```swift
/// let api = try session.host("https://api.example.com/v2").with { $0.errorMapper = ErrorMapper.json(ServiceError.self) }
/// ```
public struct ErrorMapper: HTTPErrorMapping {
    private let map: @Sendable (HTTPError) async -> any Error

    /// A mapper that calls a closure.
    public init(_ map: @escaping @Sendable (HTTPError) async -> any Error) {
        self.map = map
    }

    /// What the closure makes of the error.
    public func error(for error: HTTPError) async -> any Error {
        await map(error)
    }

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
