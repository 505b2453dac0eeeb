extension ParameterValue: ExpressibleByStringInterpolation {
    /// A text.
    public init(stringLiteral value: String) {
        self = .string(value)
    }
}

extension ParameterValue: ExpressibleByIntegerLiteral {
    /// A whole number.
    public init(integerLiteral value: Int) {
        self = .integer(value)
    }
}

extension ParameterValue: ExpressibleByFloatLiteral {
    /// A number.
    public init(floatLiteral value: Double) {
        self = .number(value)
    }
}

extension ParameterValue: ExpressibleByBooleanLiteral {
    /// Yes or no.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}

extension ParameterValue: ExpressibleByNilLiteral {
    /// Nothing.
    public init(nilLiteral: ()) {
        self = .null
    }
}

extension ParameterValue: ExpressibleByArrayLiteral {
    /// Values in order.
    public init(arrayLiteral elements: ParameterValue...) {
        self = .array(elements)
    }
}

extension ParameterValue: ExpressibleByDictionaryLiteral {
    /// Values by name; of two with one name the last counts.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}
