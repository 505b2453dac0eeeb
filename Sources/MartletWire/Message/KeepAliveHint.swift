/// What a server says about how long it keeps an idle connection: `Keep-Alive: timeout=5, max=100`.
package struct KeepAliveHint: Equatable, Sendable {
    /// Seconds the server keeps the connection idle, or nil when it does not say.
    package private(set) var timeout: Int?
    /// Further requests the server accepts on the connection, or nil when it does not say.
    package private(set) var remainingUses: Int?

    /// Reads the hint of a head; members that are malformed or too large are ignored.
    package init(_ fields: FieldBlock) {
        var next = fields.firstIndex(of: "Keep-Alive")
        while let index = next {
            for element in ElementList(fields.value(at: index)) { read(element) }
            next = fields.firstIndex(of: "Keep-Alive", from: index + 1)
        }
    }

    private mutating func read(_ element: ArraySlice<UInt8>) {
        guard let equals = element.firstIndex(of: UInt8(ascii: "=")) else { return }
        let name = ByteClass.trimmed(element[..<equals])
        var text = ByteClass.trimmed(element[(equals + 1)...])
        if text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"") {
            text = text.dropFirst().dropLast()
        }
        guard let value = DecimalNumber(text).exactValue else { return }
        if ByteClass.equalsIgnoringCase(name, "timeout".utf8.span) {
            timeout = Int(clamping: value)
        } else if ByteClass.equalsIgnoringCase(name, "max".utf8.span) {
            remainingUses = Int(clamping: value)
        }
    }
}
