public import HTTPTypes
import MartletContent
public import MartletCore
import MartletDiagnostics
import MartletURL

/// A request as a cassette records and compares it: with masked secrets.
public struct CassetteRequest: Hashable, Sendable {
    /// The method of the request.
    public var method: HTTPRequest.Method
    /// The URL, without user info and fragment.
    public var url: HTTPURL
    /// The header fields of the program and of the body, without those that the session adds later.
    public var headers: HTTPFields
    /// The body; empty if the matching rule does not need it.
    public var body: [UInt8]

    /// The method and the URL.
    var name: String { "\(method.rawValue) \(url)" }
}

/// A request and its response in a cassette, with masked secrets.
public struct CassetteEntry: Hashable, Sendable {
    /// The request.
    public var request: CassetteRequest
    /// The status and the header fields of the response, in the order received.
    public var response: HTTPResponse
    /// The body of the response, with content codings decoded.
    public var body: [UInt8]
    /// The trailers of the response; `nil` for none.
    public var trailers: HTTPFields?
}

/// The secrets that a cassette masks: those of HAR logs, and members of JSON bodies.
struct CassetteMask: Sendable {
    let secrets: SecretRedaction
    /// The lower-case names of secret members.
    let jsonKeys: Set<String>

    /// Returns the masked form of a request. Masking it again does not change it.
    func masked(_ request: CassetteRequest) -> CassetteRequest {
        CassetteRequest(
            method: request.method, url: masked(request.url), headers: masked(request.headers),
            body: masked(request.body, type: request.headers[.contentType]))
    }

    func masked(_ url: HTTPURL) -> HTTPURL {
        HTTPURL(
            scheme: url.scheme, userInfo: nil, host: url.host, hostKind: url.hostKind, explicitPort: url.explicitPort,
            path: url.path, query: url.query.map { secrets.query($0) }, fragment: nil)
    }

    func masked(_ fields: HTTPFields) -> HTTPFields {
        var masked = HTTPFields()
        for field in fields {
            let value = secrets.value(of: field.name, field.value)
            masked.append(value == field.value ? field : HTTPField(name: field.name, value: value))
        }
        return masked
    }

    /// Returns a body with masked items of a form or members of JSON; other and malformed bodies unchanged.
    func masked(_ body: [UInt8], type: String?) -> [UInt8] {
        guard let type = type.flatMap({ MediaType($0) }) else { return body }
        if type.essence == "application/x-www-form-urlencoded", let form = String(validating: body, as: UTF8.self) {
            return Array(secrets.query(form).utf8)
        }
        guard !jsonKeys.isEmpty, type.isJSON, let value = try? JSONValue(parsing: body) else { return body }
        let masked = masked(value)
        return masked == value ? body : masked.bytes()
    }

    /// The parser limits the depth of the recursion.
    private func masked(_ value: JSONValue) -> JSONValue {
        switch value {
        case .null, .bool, .number, .string: value
        case .array(let elements): .array(elements.map(masked))
        case .object(let members):
            .object(
                JSONObject(
                    members.map {
                        ($0.name, jsonKeys.contains($0.name.lowercased()) ? "masked" : masked($0.value))
                    }))
        }
    }
}

/// The reason why a cassette could not be read, written or used. More cases may be added: a `switch` needs a default.
public enum CassetteError: Error, Sendable, CustomStringConvertible {
    /// No recorded request matches, or all that match were used and do not repeat. Nothing was sent.
    case unmatched(CassetteMismatch)
    /// The file is not a usable HAR file. Contains the file, the number of the entry from 0 (`nil` outside of the
    /// entries), the position of the value, such as `log.entries[2].response.status`, and the reason.
    case malformed(path: String, entry: Int?, keyPath: String, reason: String)
    /// A body or the file exceeds its limit. Contains a description with the request and the limit.
    case tooLarge(String)
    /// The file could not be read or written.
    case fileFailed(StorageError)

    /// The error with the request or the file, without secrets, and possible remedies.
    public var description: String {
        switch self {
        case .unmatched(let mismatch): mismatch.description
        case .malformed(let path, _, let keyPath, let reason):
            "\(path): \(keyPath.isEmpty ? "" : "\(keyPath) ")\(reason)"
        case .tooLarge(let text): text
        case .fileFailed(let error) where error.isMissingFile && error.operation == "open":
            "\(error); record the cassette with the mode .record"
        case .fileFailed(let error): error.description
        }
    }
}

/// A request that a cassette has no response for, with the recorded requests that are most similar to it.
public struct CassetteMismatch: Hashable, Sendable, CustomStringConvertible {
    /// A recorded request.
    public struct Candidate: Hashable, Sendable {
        /// The number of the entry in the file, from 0.
        public var index: Int
        /// The recorded request.
        public var request: CassetteRequest
        /// The differences, most important first; empty for a match that was already used.
        public var differences: [String]
    }

    /// The file of the cassette.
    public var path: String
    /// The request that was not sent.
    public var request: CassetteRequest
    /// The most similar recorded requests, at most three, the nearest first.
    public var candidates: [Candidate]

    /// The request and the candidates on lines of their own, without secrets.
    public var description: String {
        let isUsed = candidates.first?.differences.isEmpty ?? false
        let reason = isUsed ? "all matching responses were used" : "no recorded request matches"
        let lines = candidates.map { candidate in
            let differences = candidate.differences.joined(separator: "; ")
            return "\n  entry \(candidate.index), \(candidate.request.name): "
                + (differences.isEmpty ? "already used" : differences)
        }
        return "\(request.name): \(reason) in \(path); change the matching rule, or record again with the mode .record"
            + lines.joined()
    }
}
