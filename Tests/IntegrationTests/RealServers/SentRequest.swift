import Foundation
import Martlet
import MartletTesting
import Synchronization

/// A request as an origin, or a proxy, saw it, in a form in which those of two clients can be compared.
struct SentRequest: Equatable, CustomStringConvertible {
    var method: String
    var target: String
    /// Lower-case names, sorted.
    var fields: [String]
    var body: String

    var description: String {
        "\n\(method) \(target)\n\(fields.joined(separator: "\n"))\n\n\(body)\n"
    }

    /// Drops the lines of a field.
    mutating func drop(_ name: String) {
        fields.removeAll { $0.hasPrefix("\(name):") }
    }

    /// The value of a field; `nil` without it.
    func value(of name: String) -> String? {
        fields.first { $0.hasPrefix("\(name): ") }.map { String($0.dropFirst(name.utf8.count + 2)) }
    }

    /// Replaces a field's value, where it has one.
    mutating func change(_ name: String, _ change: (String) -> String) {
        for index in fields.indices where fields[index].hasPrefix("\(name): ") {
            fields[index] = "\(name): \(change(String(fields[index].dropFirst(name.utf8.count + 2))))"
        }
    }

    /// Replaces the boundary of a form by a word, and its length by that of the rest: each client draws its own.
    mutating func maskBoundary() {
        guard let type = value(of: "content-type"), let mark = type.range(of: "boundary=") else { return }
        let boundary = type[mark.upperBound...]
        let length = body.utf8.count
        change("content-length") { $0 == "\(length)" ? "as it is" : "wrong: \($0)" }
        body = body.replacing(boundary, with: "BOUNDARY")
        change("content-type") { $0.replacing(boundary, with: "BOUNDARY") }
    }

    /// Puts the parameters of Digest in order, and replaces the two that are drawn at random, or follow from it.
    mutating func maskDigest() {
        change("authorization") { value in
            guard value.hasPrefix("Digest ") else { return value }
            let hasClientNonce = value.contains("cnonce=")
            let parameters = value.dropFirst(7).split(separator: ", ").map(String.init)
            // Without a client nonce the proof is the same for all.
            return "Digest "
                + parameters.map { parameter in
                    let name = parameter.prefix { $0 != "=" }
                    return name == "cnonce" || hasClientNonce && name == "response" ? "\(name)=…" : parameter
                }.sorted().joined(separator: ", ")
        }
    }
}

/// What an origin was sent, in the order it came.
final class RequestLog: Sendable {
    private let requests = Mutex<[SentRequest]>([])

    /// Writes a request down, its body included.
    func record(_ request: OriginRequest) async throws {
        let body = try await request.collectText()
        let sent = SentRequest(
            method: request.method.rawValue, target: request.target,
            fields: request.fields.map { "\($0.name.lowercased()): \($0.value)" }.sorted(), body: body)
        requests.withLock { $0.append(sent) }
    }

    /// Gives back what was written down, and forgets it.
    func take() -> [SentRequest] {
        requests.withLock { requests in
            defer { requests = [] }
            return requests
        }
    }
}
