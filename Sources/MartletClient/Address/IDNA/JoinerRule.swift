/// Where the two zero-width joiners may stand (ContextJ: RFC 5892, appendix A.1 and A.2).
enum JoinerRule {
    /// The joining types the rule asks about; the rest do not join.
    enum JoiningType: UInt8 {
        case transparent = 1
        case left = 2
        case right = 3
        case dual = 4
    }

    private static let virama: UInt8 = 9

    /// Whether every joiner of a label stands where it changes how the label looks.
    static func allows(_ label: [Unicode.Scalar]) -> Bool {
        for (index, scalar) in label.enumerated() where scalar.value == 0x200C || scalar.value == 0x200D {
            if index > 0, IDNATables.combiningClassTable[label[index - 1]] == virama { continue }
            // Only the non-joiner has a second place: between letters that would join without it.
            guard scalar.value == 0x200C else { return false }
            let before = nearestType(in: label[..<index].reversed())
            let after = nearestType(in: label[(index + 1)...])
            guard before == .left || before == .dual, after == .right || after == .dual else { return false }
        }
        return true
    }

    /// The type of the first scalar that is not transparent.
    private static func nearestType(in scalars: some Sequence<Unicode.Scalar>) -> JoiningType? {
        for scalar in scalars {
            let type = JoiningType(rawValue: IDNATables.joiningTypeTable[scalar])
            if type != .transparent { return type }
        }
        return nil
    }
}
