/// Which labels may stand in a name that holds right-to-left text (RFC 5893 §2).
enum BidiRule {
    /// The bidirectional classes the rule names.
    enum BidiClass: UInt8 {
        case leftToRight = 1
        case rightToLeft
        case arabicLetter
        case arabicNumber
        case europeanNumber
        case europeanSeparator
        case commonSeparator
        case europeanTerminator
        case otherNeutral
        case boundaryNeutral
        case nonspacingMark
    }

    /// Whether a label makes the whole name a bidirectional one.
    static func concerns(_ label: [Unicode.Scalar]) -> Bool {
        label.contains { scalar in
            switch bidiClass(scalar) {
            case .rightToLeft, .arabicLetter, .arabicNumber: true
            default: false
            }
        }
    }

    /// Whether a label of a bidirectional name keeps the six conditions.
    static func allows(_ label: [Unicode.Scalar]) -> Bool {
        let classes = label.map(bidiClass)
        guard let first = classes.first, !classes.contains(nil) else { return classes.isEmpty }
        let last = classes.last { $0 != .nonspacingMark } ?? nil
        switch first {
        case .leftToRight:
            guard last == .leftToRight || last == .europeanNumber else { return false }
            return classes.allSatisfy { $0 != .rightToLeft && $0 != .arabicLetter && $0 != .arabicNumber }
        case .rightToLeft, .arabicLetter:
            switch last {
            case .rightToLeft, .arabicLetter, .europeanNumber, .arabicNumber: break
            default: return false
            }
            guard !(classes.contains(.europeanNumber) && classes.contains(.arabicNumber)) else {
                return false
            }
            return !classes.contains(.leftToRight)
        default:
            return false
        }
    }

    private static func bidiClass(_ scalar: Unicode.Scalar) -> BidiClass? {
        BidiClass(rawValue: IDNATables.bidiClassTable[scalar])
    }
}
