/// A number written as plain ASCII digits: what HTTP means by 1*DIGIT.
package enum DecimalNumber: Equatable, Sendable {
    /// The digits' value, at most 2^63 − 1, so that it also fits signed offsets.
    case value(UInt64)
    /// Digits whose value is larger.
    case overflow
    /// Not one or more digits: a sign, a blank, anything else, or nothing.
    case invalid

    /// Reads all of the bytes; leading zeros are allowed.
    package init(_ bytes: ArraySlice<UInt8>) {
        guard !bytes.isEmpty else {
            self = .invalid
            return
        }
        var value: UInt64 = 0
        var isOverflown = false
        for byte in bytes {
            guard ByteClass.isDigit(byte) else {
                self = .invalid
                return
            }
            // 2^63 − 1 times ten does not fit, so the overflow flags of both steps matter.
            let product = value.multipliedReportingOverflow(by: 10)
            let sum = product.partialValue.addingReportingOverflow(UInt64(byte &- 0x30))
            value = sum.partialValue
            isOverflown = isOverflown || product.overflow || sum.overflow || value > UInt64(Int64.max)
        }
        self = isOverflown ? .overflow : .value(value)
    }

    /// The value, or nil when it is too large or not a number.
    package var exactValue: UInt64? {
        if case .value(let value) = self { value } else { nil }
    }
}
