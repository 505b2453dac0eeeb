import FoundationEssentials

extension ParameterValue: Encodable {
    /// Writes the tree as what it stands for: objects, arrays and plain values. Sets are arrays, in the order of
    /// ``QueryEncoding``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .decimal(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .date(let value): try container.encode(value)
        case .data(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .set(let values): try container.encode(try QueryWriter.sorted(values))
        case .object(let values): try container.encode(values)
        }
    }

    /// Refuses what no format can hold.
    /// - Parameter allowsNull: Whether ``null`` may stand below the top.
    func check(allowsNull: Bool = true) throws(ParameterError) {
        try check(at: ParameterPath(), allowsNull: allowsNull)
    }

    private func check(at path: ParameterPath, allowsNull: Bool) throws(ParameterError) {
        switch self {
        case .null:
            if !allowsNull { throw ParameterError(.nullNotAllowed, at: path) }
        case .number(let value):
            guard value.isFinite else { throw ParameterError(.notFinite, at: path) }
        case .decimal(let value):
            guard !value.isNaN else { throw ParameterError(.notFinite, at: path) }
        case .date(let value):
            guard value.timeIntervalSince1970.isFinite else {
                throw ParameterError(.dateOutOfRange, at: path)
            }
        case .bool, .integer, .unsigned, .string, .data: break
        case .array(let values):
            for (index, value) in values.enumerated() {
                try value.check(at: try path.inside(index), allowsNull: allowsNull)
            }
        case .set(let values):
            let inner = try path.inside(0)
            for value in values { try value.check(at: inner, allowsNull: allowsNull) }
        case .object(let values):
            for (key, value) in values { try value.check(at: try path.inside(key), allowsNull: allowsNull) }
        }
    }
}
