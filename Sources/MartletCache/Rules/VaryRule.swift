package import MartletWire

/// Which request fields a response was chosen by (RFC 9110 §12.5.5, RFC 9111 §4.1).
package enum VaryRule: Equatable, Sendable {
    /// By these, in lower case, sorted, each once; by none where it is empty.
    case fields([String])
    /// By more than request fields say (`*`), or by something that is no name, or by more names than
    /// ``nameLimit``: such a response answers no other request.
    case everything

    /// The most names that are told apart: stops a field from making each look-up expensive.
    package static let nameLimit = 32
    /// The most bytes of request fields that are kept of one response: beyond it, it is not stored.
    package static let selectionLimit = 16_384

    /// Reads the `Vary` fields of a response.
    package init(_ fields: FieldBlock) {
        var names: Set<String> = []
        for value in fields.rawValues(of: "Vary") {
            for member in ElementList(value) {
                guard !member.elementsEqual("*".utf8), member.count <= 256,
                    member.allSatisfy(ByteClass.isToken)
                else {
                    self = .everything
                    return
                }
                names.insert(String(decoding: member.map(ByteClass.lowercased), as: UTF8.self))
                guard names.count <= VaryRule.nameLimit else {
                    self = .everything
                    return
                }
            }
        }
        self = .fields(names.sorted())
    }

    /// What a request says of the fields that a response is chosen by, to be stored with it; nil where the response
    /// answers no other request, or where it cannot be told without storing a secret.
    package func selections(of request: CacheRequest) -> [StoredHead.Selection]? {
        guard case .fields(let names) = self else { return nil }
        var selections: [StoredHead.Selection] = []
        var byteCount = 0
        for name in names {
            switch SelectedValue.of(name, in: request) {
            case .absent: selections.append(.init(name: name, value: nil))
            case .value(let value):
                byteCount += value.utf8.count
                guard byteCount <= VaryRule.selectionLimit else { return nil }
                selections.append(.init(name: name, value: value))
            case .secret: return nil
            }
        }
        return selections
    }

    /// Whether a request says the same of the fields that a stored response was chosen by.
    package static func matches(_ head: StoredHead, _ request: CacheRequest) -> Bool {
        head.selections.allSatisfy { selection in
            switch SelectedValue.of(selection.name, in: request) {
            case .absent: selection.value == nil
            case .value(let value): selection.value == value
            case .secret: false
            }
        }
    }
}
