import HTTPTypes

/// The lines of `-H`: fields to send, and fields not to send.
struct HeaderLines: Sendable {
    /// Fields to send, in order.
    private(set) var fields = HTTPFields()
    /// Defaults that are left out.
    private(set) var omitted: Set<HTTPField.Name> = []

    /// Reads lines: `Name: value`, `Name;` for an empty value, `Name:` to leave a default out.
    init(_ lines: [String]) throws(UsageError) {
        for line in lines { try add(line) }
    }

    /// Reads one more line.
    mutating func add(_ line: String) throws(UsageError) {
        guard let mark = line.first(":", ";") else {
            throw UsageError("option -H: “\(line)” has no colon")
        }
        let text = line[..<mark]
        guard let name = HTTPField.Name(String(text)) else {
            throw UsageError("option -H: “\(text)” is not a field name")
        }
        let value = String(line.rest(behind: mark).unicodeScalars.drop { $0 == " " || $0 == "\t" })
        guard HeaderLines.isValid(value) else {
            throw UsageError("option -H: the value of \(name.rawName) has a control character")
        }
        if line.unicodeScalars[mark] == ";" {
            guard value.isEmpty else { throw UsageError("option -H: “\(line)” has no colon") }
            fields.append(HTTPField(name: name, value: ""))
        } else if value.isEmpty {
            guard name != .contentLength, name != .transferEncoding else {
                throw UsageError("option -H: \(name.rawName) frames the body and cannot be left out")
            }
            omitted.insert(name)
        } else {
            fields.append(HTTPField(name: name, value: value))
        }
    }

    /// A text without blanks around it.
    static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { start[...$0] } ?? ""
    }

    /// The value of an option that becomes a field's.
    static func checked(_ value: String, _ option: String) throws(UsageError) -> String {
        guard isValid(value) else { throw UsageError("option \(option): the value has a control character") }
        return value
    }

    /// Control characters would split the request.
    static func isValid(_ value: some StringProtocol) -> Bool {
        value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 9 }
    }

    /// Sets a field unless the lines did, or took it out.
    mutating func setDefault(_ name: HTTPField.Name, _ value: String) {
        guard fields[name] == nil, !omitted.contains(name) else { return }
        fields.append(HTTPField(name: name, value: value))
    }

    /// Adds a field, whatever the lines say.
    mutating func append(_ name: HTTPField.Name, _ value: String) {
        fields.append(HTTPField(name: name, value: value))
    }

    /// Leaves a default out.
    mutating func omit(_ name: HTTPField.Name) {
        omitted.insert(name)
    }
}
