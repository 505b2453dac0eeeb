import FoundationEssentials
import HTTPTypes
import MartletContent
import MartletCore
import MartletDiagnostics
import MartletURL

/// A HAR 1.2 file as a cassette uses it: its entries, and their text.
///
/// Members that a cassette does not use are preserved. Entries without a final response and those of other schemes,
/// such as `data:` URLs in files of browsers, have no ``Recording/entry``.
package struct CassetteFile: Sendable {
    /// An entry of the file.
    package struct Recording: Sendable {
        /// The entry; `nil` if it cannot be replayed.
        package let entry: CassetteEntry?
        /// The entry as indented JSON.
        let json: [UInt8]
    }

    /// The member `log` without its entries.
    private var log: JSONObject
    /// The entries in the order of the file.
    package private(set) var recordings: [Recording] = []
    /// The approximate size of the file, in bytes.
    private(set) var byteCount = 0

    /// Creates a file without entries.
    init() {
        log = JSONObject([
            ("version", "1.2"), ("creator", ["name": "Martlet", "version": .string(martletVersion)]), ("pages", []),
        ])
    }

    /// Parses a file.
    /// - Parameters:
    ///   - path: The name of the file, for errors.
    ///   - bodyLimit: The maximum size of each body, in bytes.
    /// - Throws: `.malformed` with the position of the first error.
    package init(parsing bytes: [UInt8], path: String, bodyLimit: Int) throws(CassetteError) {
        let root: JSONValue
        do throws(JSONError) { root = try JSONValue(parsing: bytes) } catch {
            throw .malformed(path: path, entry: nil, keyPath: "", reason: error.description)
        }
        let value = try HARValue(value: root, keyPath: "", file: path, entry: nil)["log"]
        log = try value.object
        let entries = try value["entries"].elements
        log["entries"] = nil
        for entry in entries {
            let parsed = try CassetteFile.entry(entry, bodyLimit)
            insert(Recording(entry: parsed, json: CassetteFile.text(entry.value ?? .null)), at: recordings.count)
        }
    }

    /// Inserts an entry at a position in the file.
    mutating func insert(_ recording: Recording, at index: Int) {
        recordings.insert(recording, at: index)
        byteCount += recording.json.count + 2
    }

    /// Returns the complete file, with one value on each line.
    package func bytes() -> [UInt8] {
        var log = log
        log["entries"] = []
        var bytes = JSONValue.object(JSONObject([("log", .object(log))])).bytes(.indented)
        // The entries are the last member, so the text ends with a bracket and two braces.
        bytes.removeLast("]\n  }\n}".utf8.count)
        for (index, recording) in recordings.enumerated() { bytes += (index == 0 ? "\n" : ",\n").utf8 + recording.json }
        return bytes + (recordings.isEmpty ? "]\n  }\n}\n" : "\n    ]\n  }\n}\n").utf8
    }

    /// Returns an entry as lines with the indentation of its place in the file.
    private static func text(_ entry: JSONValue) -> [UInt8] {
        let indentation = Array("      ".utf8)
        // A line feed in a string is written as an escape, so each line feed separates values.
        return Array(entry.bytes(.indented).split(separator: 0x0A).map { indentation + $0 }.joined(separator: [0x0A]))
    }

    // MARK: Recording

    /// Returns the entry of an exchange.
    /// - Parameters:
    ///   - request: The masked request.
    ///   - trailers: The trailers of the response.
    static func recording(
        _ request: CassetteRequest, _ exchange: HTTPExchange, trailers: HTTPFields?, _ mask: CassetteMask, path: String,
        bodyLimit: Int
    ) throws(CassetteError) -> Recording {
        var options = HAROptions()
        (options.mask, options.bodyLimit) = (mask.secrets, 0)
        let har = HAREntry(exchange, sentHeaders: request.headers, options: options).value
        var entry = har.objectValue ?? JSONObject()
        var sent = har["request"]?.objectValue ?? JSONObject()
        sent["method"] = .string(request.method.rawValue)
        sent["url"] = .string(request.url.absoluteString)
        sent["bodySize"] = JSONValue(request.body.count)
        if !request.body.isEmpty {
            let type = request.headers[.contentType] ?? "application/octet-stream"
            // HAR 1.2 defines no Base64 for requests, so a custom member is used.
            sent["postData"] = .object(content(request.body, [("mimeType", .string(type))], encoding: "_encoding"))
        }
        var received = har["response"]?.objectValue ?? JSONObject()
        let body = mask.masked(exchange.body, type: exchange.headers[.contentType])
        let members = [("size", JSONValue(body.count)), ("mimeType", received["content"]?["mimeType"] ?? "x-unknown")]
        received["content"] = .object(content(body, members, encoding: "encoding"))
        if let trailers, !trailers.isEmpty {
            received["_trailers"] = .array(
                mask.masked(trailers).map { ["name": .string($0.name.rawName), "value": .string($0.value)] })
        }
        (entry["request"], entry["response"]) = (.object(sent), .object(received))
        let value = JSONValue.object(entry)
        // Parsed, so that a replay uses exactly what is in the file.
        let parsed = try self.entry(HARValue(value: value, keyPath: "", file: path, entry: nil), bodyLimit)
        return Recording(entry: parsed, json: text(value))
    }

    /// Returns members with the text of a body, in Base64 unless it is text in UTF-8.
    private static func content(_ body: [UInt8], _ members: [(String, JSONValue)], encoding name: String) -> JSONObject
    {
        var members = JSONObject(members)
        guard !body.isEmpty else { return members }
        if !body.contains(0), let text = String(validating: body, as: UTF8.self) {
            members["text"] = .string(text)
        } else {
            members["text"] = .string(Data(body).base64EncodedString())
            members[name] = "base64"
        }
        return members
    }

    // MARK: Parsing

    private static func entry(_ value: HARValue, _ bodyLimit: Int) throws(CassetteError) -> CassetteEntry? {
        let (request, response) = (try value["request"], try value["response"])
        let (method, url, status) = (try request["method"], try request["url"], try response["status"])
        let (text, code) = (try url.string, try status.integer)
        guard (0...999).contains(code) else { throw status.failure("is not a status code: \(code)") }
        let scheme = text.prefix { $0 != ":" }.lowercased()
        guard code >= 200, scheme == "http" || scheme == "https" else { return nil }
        guard let verb = HTTPRequest.Method(try method.string) else { throw method.failure("is not a method") }
        let address: HTTPURL
        do throws(HTTPURL.ParseError) { address = try HTTPURL(text, pathAsIs: true) } catch {
            throw url.failure("is not a URL: \(error)")
        }
        let (content, posted) = (try response["content"], try request["postData"])
        // Without a body, such as that of HEAD, browsers nevertheless show its size.
        let isBodyless = verb == .head || code == 204 || code == 304
        let trailers = try response["_trailers"]
        return CassetteEntry(
            request: CassetteRequest(
                method: verb, url: address, headers: try fields(request["headers"]),
                body: posted.isPresent ? try body(posted, encoding: "_encoding", bodyLimit) : []),
            response: HTTPResponse(
                status: .init(code: code, reasonPhrase: try response["statusText"].text ?? ""),
                headerFields: try fields(response["headers"])),
            body: try body(content, encoding: "encoding", bodyLimit, isOptional: isBodyless),
            trailers: trailers.isPresent ? try fields(trailers) : nil)
    }

    private static func fields(_ list: HARValue) throws(CassetteError) -> HTTPFields {
        var headers = HTTPHeaders()
        for item in try list.elements {
            let name = try item["name"].string
            let value = try item["value"].string
            // Browsers show the pseudo-fields of HTTP/2, which HTTP/1.1 does not have.
            if name.hasPrefix(":") { continue }
            headers.append(HTTPHeaders.Name(name), value)
            if let rejection = headers.rejection { throw item.failure("is invalid: \(rejection)") }
        }
        return headers.fields
    }

    private static func body(_ value: HARValue, encoding name: String, _ limit: Int, isOptional: Bool = false)
        throws(CassetteError) -> [UInt8]
    {
        let (text, encoding) = (try value["text"], try value[name])
        guard let string = try text.text else {
            let size = try value["size"]
            guard !isOptional, size.isPresent, try size.integer > 0 else { return [] }
            throw text.failure("is missing, although the body has a size")
        }
        let bytes: [UInt8]
        switch try encoding.text ?? "" {
        case "": bytes = Array(string.utf8)
        case "base64":
            guard let data = Data(base64Encoded: string) else { throw text.failure("is not valid Base64") }
            bytes = Array(data)
        case let other: throw encoding.failure("is unknown: \(CassetteKey.quoted(other))")
        }
        guard bytes.count <= limit else {
            throw text.failure("has \(bytes.count) bytes, above the limit of \(limit) for bodies")
        }
        return bytes
    }
}

/// A value of a HAR file with its position. A member that is `null` counts as missing.
private struct HARValue {
    let value: JSONValue?
    let keyPath: String
    let file: String
    let entry: Int?

    var isPresent: Bool { value != Optional.none }

    /// Returns a value unless it is `null`. The literal `nil` would be the value `null` here.
    private static func present(_ value: JSONValue?) -> JSONValue? { value?.isNull == true ? Optional.none : value }

    /// The member with a name, which may be missing.
    subscript(name: String) -> HARValue {
        get throws(CassetteError) {
            HARValue(
                value: HARValue.present(try object[name]), keyPath: keyPath.isEmpty ? name : "\(keyPath).\(name)",
                file: file, entry: entry)
        }
    }

    var object: JSONObject { get throws(CassetteError) { try required("an object", value?.objectValue) } }
    var string: String { get throws(CassetteError) { try required("a string", value?.stringValue) } }
    var integer: Int { get throws(CassetteError) { try required("an integer", value?.intValue) } }
    /// The string; `nil` for a missing member.
    var text: String? { get throws(CassetteError) { isPresent ? try string : nil } }

    /// The elements of an array. Those of the outermost array are the entries.
    var elements: [HARValue] {
        get throws(CassetteError) {
            try required("an array", value?.arrayValue).enumerated().map { index, element in
                HARValue(
                    value: HARValue.present(element), keyPath: "\(keyPath)[\(index)]", file: file,
                    entry: entry ?? (keyPath == "log.entries" ? index : nil))
            }
        }
    }

    private func required<Value>(_ kind: String, _ converted: Value?) throws(CassetteError) -> Value {
        if let converted { return converted }
        let actual =
            switch value {
            case nil, .null: "is missing"
            case .bool: "is a Boolean, expected \(kind)"
            case .number(let number): "is the number \(number.text.prefix(40)), expected \(kind)"
            case .string: "is a string, expected \(kind)"
            case .array: "is an array, expected \(kind)"
            case .object: "is an object, expected \(kind)"
            }
        throw failure(actual)
    }

    func failure(_ reason: String) -> CassetteError {
        .malformed(path: file, entry: entry, keyPath: keyPath, reason: reason)
    }
}
