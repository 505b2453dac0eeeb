import HTTPTypes

/// The fields of a request of a batch.
struct BatchHeaders: Sendable {
    /// Fields to send, in order.
    private(set) var fields = HTTPFields()
    /// Defaults that are left out.
    private(set) var omitted: Set<HTTPField.Name> = []

    /// No fields.
    init() {}

    /// Reads `[["Name","value"],["Accept",null]]`.
    init(_ member: BatchMember) throws(BatchFault) {
        for item in try member.array() {
            let pair = try item.array()
            guard pair.count == 2 else {
                throw BatchFault(.other, "“headers” must be an array of names and values in pairs")
            }
            let text = try pair[0].string()
            guard let name = HTTPField.Name(text) else {
                throw BatchFault(.other, "“\(text)” is not a field name; nothing was sent")
            }
            if pair[1].isNull { try omit(name) } else { try add(name, pair[1].bytes()) }
        }
    }

    private mutating func omit(_ name: HTTPField.Name) throws(BatchFault) {
        guard name != .contentLength, name != .transferEncoding else {
            throw BatchFault(.unsupported, "\(name.rawName) frames the body and cannot be left out")
        }
        omitted.insert(name)
    }

    private mutating func add(_ name: HTTPField.Name, _ value: [UInt8]) throws(BatchFault) {
        guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 9 }) else {
            throw BatchFault(.other, "the value of \(name.rawName) has a control character; nothing was sent")
        }
        guard name.canonicalName != "host" || fields[name] == nil else {
            throw BatchFault(.other, "Host is given twice; nothing was sent")
        }
        fields.append(HTTPField(name: name, value: value))
    }
}
