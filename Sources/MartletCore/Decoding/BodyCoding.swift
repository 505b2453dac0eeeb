public import FoundationEssentials

/// The forms of names and dates in JSON.
public enum JSONForm {
    /// The names of members.
    public enum Keys: String, Hashable, Sendable, Codable, CaseIterable {
        /// The names of the coding keys.
        case unchanged
        /// `firstName` in Swift is `first_name` in JSON.
        case snakeCase

        /// The strategy of an encoder.
        package var strategy: JSONEncoder.KeyEncodingStrategy {
            self == .snakeCase ? .convertToSnakeCase : .useDefaultKeys
        }

        /// The form of a strategy; `nil` for a closure.
        package init?(_ strategy: JSONEncoder.KeyEncodingStrategy) {
            switch strategy {
            case .useDefaultKeys: self = .unchanged
            case .convertToSnakeCase: self = .snakeCase
            default: return nil
            }
        }
    }

    /// The form of dates.
    public enum Dates: String, Hashable, Sendable, Codable, CaseIterable {
        /// Seconds since 2001, the default of `JSONEncoder` and `JSONDecoder`.
        case secondsSince2001
        /// Text such as `2026-07-31T12:00:00Z` (RFC 3339). Fractions of seconds are read, and not written.
        case iso8601
        /// Seconds since 1970.
        case secondsSince1970
        /// Milliseconds since 1970.
        case millisecondsSince1970

        /// The strategy of an encoder.
        package var strategy: JSONEncoder.DateEncodingStrategy {
            switch self {
            case .secondsSince2001: .deferredToDate
            case .iso8601: .iso8601
            case .secondsSince1970: .secondsSince1970
            case .millisecondsSince1970: .millisecondsSince1970
            }
        }

        /// The form of a strategy; `nil` for a closure.
        package init?(_ strategy: JSONEncoder.DateEncodingStrategy) {
            switch strategy {
            case .deferredToDate: self = .secondsSince2001
            case .iso8601: self = .iso8601
            case .secondsSince1970: self = .secondsSince1970
            case .millisecondsSince1970: self = .millisecondsSince1970
            default: return nil
            }
        }
    }
}

/// Encodes values as the bodies of requests.
///
/// It is a value without mutable state: many tasks may use it concurrently.
public struct BodyEncoder: Sendable {
    private var keys = JSONForm.Keys.unchanged
    private var dates = JSONForm.Dates.secondsSince2001
    private var custom: JSONEncoder?
    /// Whether it was chosen, and is not the default of a session.
    package private(set) var isChosen = false

    /// The default of a session.
    package init() {}

    /// JSON. The names of each object are sorted, so that equal values give equal bytes.
    /// - Parameters:
    ///   - keys: The names of members; unchanged by default.
    ///   - dates: The form of dates; as `JSONEncoder` by default.
    public static func json(keys: JSONForm.Keys = .unchanged, dates: JSONForm.Dates = .secondsSince2001) -> BodyEncoder
    {
        var encoder = BodyEncoder()
        (encoder.keys, encoder.dates, encoder.isChosen) = (keys, dates, true)
        return encoder
    }

    /// JSON as an encoder writes it. The encoder must not be changed afterwards.
    public static func json(_ encoder: JSONEncoder) -> BodyEncoder {
        var chosen = BodyEncoder()
        (chosen.custom, chosen.isChosen) = (encoder, true)
        return chosen
    }

    /// The encoder of values.
    package var json: JSONEncoder {
        if let custom { return custom }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.keyEncodingStrategy = keys.strategy
        encoder.dateEncodingStrategy = dates.strategy
        return encoder
    }

    /// The bytes of a value.
    /// - Throws: The errors of the value and of `JSONEncoder`.
    package func bytes(of value: some Encodable) throws -> [UInt8] { Array(try json.encode(value)) }
}

/// Decodes values from the bodies of responses.
///
/// It is a value without mutable state: many tasks may use it concurrently.
public struct BodyDecoder: Sendable {
    private var keys = JSONForm.Keys.unchanged
    private var dates = JSONForm.Dates.secondsSince2001
    private var custom: JSONDecoder?

    /// JSON. The parameters are those of ``BodyEncoder/json(keys:dates:)``.
    public static func json(keys: JSONForm.Keys = .unchanged, dates: JSONForm.Dates = .secondsSince2001) -> BodyDecoder
    { BodyDecoder(keys: keys, dates: dates) }

    /// JSON as a decoder reads it. The decoder must not be changed afterwards.
    public static func json(_ decoder: JSONDecoder) -> BodyDecoder { BodyDecoder(custom: decoder) }

    /// The value in a document.
    /// - Throws: The errors of the value and of `JSONDecoder`.
    package func value<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        if let custom { return try custom.decode(type, from: data) }
        let decoder = JSONDecoder()
        if keys == .snakeCase { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        decoder.dateDecodingStrategy =
            switch dates {
            case .secondsSince2001: .deferredToDate
            case .iso8601: .custom(BodyDecoder.date)
            case .secondsSince1970: .secondsSince1970
            case .millisecondsSince1970: .millisecondsSince1970
            }
        return try decoder.decode(type, from: data)
    }

    /// A date with or without a fraction of a second: `.iso8601` of `JSONDecoder` does not read fractions.
    @Sendable private static func date(_ decoder: any Decoder) throws -> Date {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.utf8.contains(UInt8(ascii: ".")))
        guard let date = try? style.parse(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "the date is not in ISO 8601")
        }
        return date
    }
}

/// The parts of a session's settings that its exchanges keep: an exchange may be stored for long, and must not hold the session's
/// other objects, such as a cache.
final class ResponseCoding: Sendable {
    let decoder: BodyDecoder
    private let errors: ErrorMapper?

    init(_ configuration: SessionConfiguration) {
        decoder = configuration.decoder
        errors = configuration.errors
    }

    /// The error that is thrown in place of another.
    func mapped(_ error: any Error) -> any Error { errors?.error(for: error) ?? error }
}

extension HTTPExchange {
    /// The coding of the session or host.
    var coding: ResponseCoding { storage.coding }

    /// Decodes the body as JSON if the status is 2xx, or one of those given, and the content type may be that of JSON.
    ///
    /// ```swift
    /// let user: User = try await session.get("https://api.example.com/users/1").decode()
    /// let users = try await session.get("https://api.example.com/users").decode([User].self)
    /// let problem = try error.exchange?.decode(Problem.self, status: 400..<600)
    /// ```
    ///
    /// The decoder is that of the host or session (``SessionConfiguration/decoder``), unless one is given. Accepted are
    /// `application/json`, `text/json`, `text/javascript`, any type that ends with `+json`, and a response without a type; as well
    /// as `text/plain` and `application/octet-stream`, under which many servers and buckets send JSON. HTML, XML and images are
    /// rejected before they are decoded.
    ///
    /// - Throws: An ``HTTPError`` with this exchange and the code `.unacceptableStatus`, `.unacceptableContentType`, or
    ///   `.decodingFailed`, whose message has the coding path and up to 256 bytes of the body, or that there is no body, as with a 204, and
    ///   whose ``HTTPError/underlying`` is the `DecodingError`. Or its replacement by ``SessionConfiguration/errors``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder? = nil, status: Range<Int> = 200..<300
    ) throws -> Value {
        try checked {
            let subject = ValidationSubject(self)
            try subject.checkStatus(status.isEmpty ? [] : [ClosedRange(status)])
            if storage.head.fields.firstValue(of: "content-type") != "application/json" {
                try subject.checkContentType(HTTPExchange.typesOfJSON, takesUntyped: true, shows: self)
            }
            let data = Data(body)
            return if let decoder { try decoder.decode(type, from: data) } else {
                try coding.decoder.value(type, from: data)
            }
        }
    }

    /// The types under which servers send JSON.
    static let jsonContentTypes = ["application/json", "text/json", "text/javascript", "application/*+json"]
    private static let typesOfJSON = MediaRangeList(jsonContentTypes + ["text/plain", "application/octet-stream"])

    /// The result of `decode()` where no type is given, which does not compile.
    public struct ValueWithoutType: Sendable {}

    /// Matches a call without a type, so that the compiler says what is missing.
    @available(
        *, unavailable, message: "name the type of the value: decode(User.self), or let user: User = try … .decode()"
    ) public func decode() throws -> ValueWithoutType { ValueWithoutType() }

    /// Decodes the response if its status is one of these and its content type one that the decoder accepts
    /// (``ResponseDecoder/acceptableContentTypes``).
    ///
    /// ```swift
    /// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
    /// let problem = try error.exchange?.decode(using: .json(Problem.self), status: 400..<600)
    /// ```
    ///
    /// A response without `Content-Type` is decoded (RFC 9110 §8.3).
    /// - Throws: As `decode(_:using:)`; the underlying error is that of the decoder. `CancellationError`, as it is.
    public func decode<Decoder: ResponseDecoder>(using decoder: Decoder, status: Range<Int> = 200..<300) throws
        -> Decoder.Output
    {
        try checked {
            let subject = ValidationSubject(self)
            try subject.checkStatus(status.isEmpty ? [] : [ClosedRange(status)])
            try subject.checkContentType(of: decoder)
            return try decoder.decode(self)
        }
    }

    /// The exchange itself if the status is 2xx.
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange, or its replacement by
    ///   ``SessionConfiguration/errors``.
    public func validated() throws -> HTTPExchange {
        try checked {
            try ValidationSubject(self).checkStatus([200...299])
            return self
        }
    }

    /// Runs code that evaluates the response. Its errors name the request, and pass the error mapper.
    func checked<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw failure(error) }
    }

    @inline(never) private func failure(_ error: any Error) -> any Error {
        if error is CancellationError { return error }
        // Decoders have different words for the lack of a body.
        let message =
            body.isEmpty
            ? "there is no value to decode: the response was \(outline(byteCount: nil)), without a body"
            : "\(DecodingFailure.text(of: error, in: "the body")); the response was \(outline), \(beginning)"
        return coding.mapped(
            error as? HTTPError
                ?? HTTPError(
                    .decodingFailed, phase: .processingResponse, message: message, wasSent: true,
                    method: storage.method, url: url, attempts: metrics.attempts, underlying: error, exchange: self))
    }

    /// The status, the content type and the size of the body, such as `404 Not Found (application/json, 58 bytes)`.
    var outline: String { outline(byteCount: UInt64(body.count)) }

    func outline(byteCount: UInt64?) -> String {
        let type = storage.head.fields.firstValue(of: "content-type").map { field in
            MediaType(field)?.essence ?? "invalid content type"
        }
        let parts = [type, byteCount.map { "\($0) bytes" }].compactMap { $0?.prefix(100) }
        let reason = storage.head.reason.prefix(100)
        return "\(statusCode)\(reason.isEmpty ? "" : " \(reason)")"
            + (parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))")
    }

    /// The first bytes of the body, for an error.
    var beginning: String {
        body.isEmpty ? "without a body" : "and its body begins with: \(DecodingFailure.beginning(of: body))"
    }
}

/// Decodes the values that the body of a response consists of, such as its lines. It may outlive the call, and holds nothing
/// of it but its request.
package final class PartDecoder: Sendable {
    private let coding: ResponseCoding
    private let call: (method: HTTPRequest.Method, url: HTTPURL, status: Int)?

    /// The decoder of the parts of a body, which is that of the host or session.
    package init(_ body: ResponseBody) {
        let call = body.reader.call
        coding = call.settings.coding
        self.call = (call.method, call.url, body.reader.answer.head.status)
    }

    /// The decoder of parts that came from no response.
    package init() {
        coding = ResponseCoding(.default)
        call = nil
    }

    /// Decodes one part.
    /// - Parameter name: The part in words, such as `line 3`.
    /// - Throws: An ``HTTPError`` with the code `.decodingFailed`, or its replacement by the error mapper.
    package func value<Value: Decodable>(
        _ type: Value.Type, from bytes: some Collection<UInt8>, _ name: @autoclosure () -> String
    ) throws -> Value {
        do { return try coding.decoder.value(type, from: Data(bytes)) } catch {
            let name = name()
            throw coding.mapped(
                HTTPError(
                    .decodingFailed, phase: .processingResponse,
                    message:
                        "\(DecodingFailure.text(of: error, in: name)); \(name) begins with: \(DecodingFailure.beginning(of: bytes))",
                    wasSent: true, method: call?.method, url: call?.url, status: call?.status, underlying: error))
        }
    }
}
