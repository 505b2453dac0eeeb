import FoundationEssentials
import MartletContent
import MartletURL

/// The description of a request in the form of httpbin.org.
struct HTTPBinReport: Encodable {
    private let args: [String: JSONValue]
    private let headers: [String: String]
    private let method: String
    private let origin: String
    private let url: String
    /// The body as text, or as a data URL if it is not UTF-8; empty for a form.
    private let data: String
    /// The fields of a URL-encoded form. A multipart body is in ``data`` as it was sent.
    private let form: [String: JSONValue]
    private let json: JSONValue?

    /// Reads the request's body, of at most 16 MiB.
    init(_ request: OriginRequest) async throws {
        let bytes = try await request.collectBody()
        let type = (request.contentType ?? "").lowercased().prefix { $0 != ";" }
        let isForm = type == "application/x-www-form-urlencoded"
        let text = String(validating: bytes, as: UTF8.self)
        args = HTTPBinReport.grouped(request.query.items)
        headers = HTTPBinReport.headers(of: request)
        (method, url) = (request.method.rawValue, request.url)
        origin = HTTPBinReport.address(of: request)
        let items = isForm ? FormEncoding.decoded(text ?? "").map { ($0.name, $0.value ?? "") } : []
        form = HTTPBinReport.grouped(items)
        data = isForm ? "" : text ?? "data:application/octet-stream;base64,\(Data(bytes).base64EncodedString())"
        json = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// The values by name. A repeated name has an array of its values.
    static func grouped(_ items: [(name: String, value: String)]) -> [String: JSONValue] {
        Dictionary(grouping: items, by: \.name).mapValues { items in
            items.count == 1 ? .string(items[0].value) : .array(items.map { .string($0.value) })
        }
    }

    /// The fields of a request; the values of a repeated name are joined.
    static func headers(of request: OriginRequest) -> [String: String] {
        var headers: [String: String] = [:]
        var spelling: [String: String] = [:]
        for (name, value) in request.headers {
            let key = spelling[name.lowercased(), default: name]
            spelling[name.lowercased()] = key
            headers[key] = headers[key].map { "\($0),\(value)" } ?? value
        }
        return headers
    }

    static func cookies(of request: OriginRequest) -> [String: String] {
        let pairs = request.headers.values(of: "Cookie").flatMap { $0.split(separator: ";") }.map { pair in
            let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), parts.count == 2 ? String(parts[1]) : "")
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// The client's address without its port.
    static func address(of request: OriginRequest) -> String {
        let address = request.connection.remoteAddress
        return address.lastIndex(of: ":").map { String(address[..<$0]) } ?? address
    }
}
