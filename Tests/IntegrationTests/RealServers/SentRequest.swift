import Foundation
import Martlet
import MartletTesting
import Synchronization

/// A request as an origin or a proxy received it, in a form that allows comparing two clients.
struct SentRequest: Equatable, CustomStringConvertible {
    var method: String
    var target: String
    /// The field lines with lower-case names, sorted.
    var fields: [String]
    var body: String

    var description: String {
        "\n\(method) \(target)\n\(fields.joined(separator: "\n"))\n\n\(body)\n"
    }

    /// Removes the lines of a field.
    mutating func drop(_ name: String) {
        fields.removeAll { $0.hasPrefix("\(name):") }
    }

    /// The value of a field; `nil` without it.
    func value(of name: String) -> String? {
        fields.first { $0.hasPrefix("\(name): ") }.map { String($0.dropFirst(name.utf8.count + 2)) }
    }

    /// Replaces the value of a field, if present.
    mutating func change(_ name: String, _ change: (String) -> String) {
        for index in fields.indices where fields[index].hasPrefix("\(name): ") {
            fields[index] = "\(name): \(change(String(fields[index].dropFirst(name.utf8.count + 2))))"
        }
    }

    /// Replaces the boundary of a form by a fixed word, and its length by that of the rest: the boundary is random.
    mutating func maskBoundary() {
        guard let type = value(of: "content-type"), let mark = type.range(of: "boundary=") else { return }
        let boundary = type[mark.upperBound...]
        let length = body.utf8.count
        change("content-length") { $0 == "\(length)" ? "as it is" : "wrong: \($0)" }
        body = body.replacing(boundary, with: "BOUNDARY")
        change("content-type") { $0.replacing(boundary, with: "BOUNDARY") }
    }

    /// Sorts the parameters of Digest, and replaces the two that are random or depend on random values.
    mutating func maskDigest() {
        change("authorization") { value in
            guard value.hasPrefix("Digest ") else { return value }
            let hasClientNonce = value.contains("cnonce=")
            let parameters = value.dropFirst(7).split(separator: ", ").map(String.init)
            // Without a client nonce the response value is the same for all.
            return "Digest "
                + parameters.map { parameter in
                    let name = parameter.prefix { $0 != "=" }
                    return name == "cnonce" || hasClientNonce && name == "response" ? "\(name)=…" : parameter
                }.sorted().joined(separator: ", ")
        }
    }
}

/// The requests that an origin received, in order of arrival.
final class RequestLog: Sendable {
    private let requests = Mutex<[SentRequest]>([])

    /// Records a request, including its body.
    func record(_ request: OriginRequest) async throws {
        let body = try await request.collectText()
        let sent = SentRequest(
            method: request.method.rawValue, target: request.target,
            fields: request.headers.map { "\($0.name.lowercased()): \($0.value)" }.sorted(), body: body)
        requests.withLock { $0.append(sent) }
    }

    /// Returns the recorded requests and removes them.
    func take() -> [SentRequest] {
        requests.withLock { requests in
            defer { requests = [] }
            return requests
        }
    }
}
