/// Members of a request whose features are not there yet: refused when they ask for something, let through
/// when they ask for what happens anyway.
enum BatchLaterFeatures {
    /// Checks a member that nothing else knows.
    static func check(_ member: BatchMember) throws(BatchFault) {
        switch member.name {
        case "cache":
            let text = try member.string()
            guard text == "none" || text == "no-store" else { throw unsupported(member, "the cache") }
        default:
            throw BatchFault(.unsupported, "the key “\(member.name)” is unknown")
        }
    }

    private static func unsupported(_ member: BatchMember, _ feature: String) -> BatchFault {
        BatchFault(.unsupported, "“\(member.name)”: \(feature) is not supported yet")
    }
}
