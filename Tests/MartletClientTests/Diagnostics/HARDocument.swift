import MartletContent
import FoundationEssentials

/// A HAR 1.2 document. Decoding fails if a member is missing or has another type.
struct HARDocument: Decodable {
    struct Log: Decodable {
        var version: String
        var creator: Named
        var pages: [Empty]?
        var entries: [Entry]
    }
    struct Named: Decodable {
        var name: String
        var version: String
    }
    struct Empty: Decodable {}
    struct Pair: Decodable, Equatable {
        var name: String
        var value: String
    }
    struct Entry: Decodable {
        var startedDateTime: String
        var time: Double
        var request: Request
        var response: Response
        var cache: Empty
        var timings: Timings
        var serverIPAddress: String?
        var connection: String?
        var _connectionId: String?
        var comment: String?
        var _error: String?
    }
    struct Request: Decodable {
        var method: String
        var url: String
        var httpVersion: String
        var cookies: [Cookie]
        var headers: [Pair]
        var queryString: [Pair]
        var postData: PostData?
        var headersSize: Int
        var bodySize: Int
    }
    struct Cookie: Decodable {
        var name: String
        var value: String
        var path: String?
        var domain: String?
        var expires: String?
        var httpOnly: Bool?
        var secure: Bool?
    }
    struct PostData: Decodable {
        struct Parameter: Decodable {
            var name: String
            var value: String?
            var fileName: String?
            var contentType: String?
        }
        var mimeType: String
        var params: [Parameter]?
        var text: String?
        var comment: String?
        var _encoding: String?
    }
    struct Response: Decodable {
        var status: Int
        var statusText: String
        var httpVersion: String
        var cookies: [Cookie]
        var headers: [Pair]
        var content: Content
        var redirectURL: String
        var headersSize: Int
        var bodySize: Int
        var _transferSize: Int?
    }
    struct Content: Decodable {
        var size: Int
        var compression: Int?
        var mimeType: String
        var text: String?
        var encoding: String?
        var comment: String?
    }
    struct Timings: Decodable {
        var blocked: Double
        var dns: Double
        var connect: Double
        var ssl: Double
        var send: Double
        var wait: Double
        var receive: Double
    }

    var log: Log

    /// The requirements of HAR 1.2 that the document violates, beyond the types.
    var violations: [String] {
        var found: [String] = []
        if log.version != "1.2" { found.append("the version is \(log.version)") }
        for (index, entry) in log.entries.enumerated() {
            found += HARDocument.violations(of: entry).map { "entry \(index): \($0)" }
        }
        return found
    }

    private static func violations(of entry: Entry) -> [String] {
        var found: [String] = []
        let instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/
        if entry.startedDateTime.wholeMatch(of: instant) == nil {
            found.append("startedDateTime is \(entry.startedDateTime)")
        }
        let times = entry.timings
        for optional in [times.blocked, times.dns, times.connect, times.ssl]
        where optional < 0 && optional != -1 {
            found.append("a time is \(optional)")
        }
        for needed in [times.send, times.wait, times.receive] where needed < 0 {
            found.append("a time that there must be is \(needed)")
        }
        let parts = [times.blocked, times.dns, times.connect, times.send, times.wait, times.receive]
        let sum = parts.reduce(0) { $0 + max($1, 0) }
        if abs(sum - entry.time) > 0.01 {
            found.append("the times sum up to \(sum), and not to \(entry.time)")
        }
        if times.ssl > 0, times.ssl > times.connect { found.append("ssl is not within connect") }
        // HAR 1.2 does not require these members, but browsers show "undefined" for parameters without a text.
        if let data = entry.request.postData, data.text == nil { found.append("postData has no text") }
        if entry.response.content.encoding == "base64" {
            let bytes = Data(base64Encoded: entry.response.content.text ?? "")
            if bytes?.count != entry.response.content.size { found.append("the content is not of its size") }
        }
        for cookie in entry.request.cookies + entry.response.cookies where cookie.name.isEmpty {
            found.append("a cookie has no name")
        }
        return found
    }

    /// Parses and checks a document.
    static func read(_ bytes: [UInt8]) throws -> HARDocument {
        try JSONDecoder().decode(HARDocument.self, from: Data(bytes))
    }
}
