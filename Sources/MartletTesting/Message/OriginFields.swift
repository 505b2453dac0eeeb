import MartletWire

/// The fields of a request or response, in order, repeated ones apart, exactly as they travel (RFC 9110 §5).
///
/// Written as a dictionary literal, in which a name may come several times:
/// `["Set-Cookie": "a=1", "Set-Cookie": "b=2"]`.
public struct OriginFields: Sendable, Hashable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
    /// A name and a value.
    public typealias Element = (name: String, value: String)

    private struct Line: Hashable {
        var name: String
        var value: String
    }

    private var lines: [Line] = []

    /// No fields.
    public init() {}

    /// Fields in the order of the literal.
    public init(dictionaryLiteral elements: (String, String)...) {
        lines = elements.map { Line(name: $0.0, value: $0.1) }
    }

    /// Fields in the order given.
    public init(_ pairs: some Sequence<(name: String, value: String)>) {
        lines = pairs.map { Line(name: $0.name, value: $0.value) }
    }

    init(_ block: FieldBlock) {
        lines = block.map { Line(name: $0.name, value: $0.value) }
    }

    /// Always 0.
    public var startIndex: Int { 0 }

    /// The number of field lines.
    public var endIndex: Int { lines.count }

    /// The field at a position.
    public subscript(position: Int) -> Element {
        (lines[position].name, lines[position].value)
    }

    /// The first value of a name, in any case; setting it replaces all lines of the name by one, `nil`
    /// removes them.
    public subscript(name: String) -> String? {
        get { lines.first { OriginFields.isSame($0.name, name) }?.value }
        set {
            let index = lines.firstIndex { OriginFields.isSame($0.name, name) }
            lines.removeAll { OriginFields.isSame($0.name, name) }
            if let newValue {
                lines.insert(Line(name: name, value: newValue), at: index ?? lines.count)
            }
        }
    }

    /// Every value of a name, in any case, one for each field line.
    public func values(of name: String) -> [String] {
        lines.filter { OriginFields.isSame($0.name, name) }.map(\.value)
    }

    /// Whether there is a field of that name, in any case.
    public func contains(_ name: String) -> Bool {
        lines.contains { OriginFields.isSame($0.name, name) }
    }

    /// Adds a field at the end, whether or not there is one of the name.
    public mutating func append(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    private static func isSame(_ left: String, _ right: String) -> Bool {
        left.utf8.count == right.utf8.count && left.lowercased() == right.lowercased()
    }
}
