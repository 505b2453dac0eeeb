/// Members of a request whose features are not there yet: refused when they ask for something, let through
/// when they ask for what happens anyway.
enum BatchLaterFeatures {
    /// Checks a member that nothing else knows.
    static func check(_ member: BatchMember) throws(BatchFault) {
        switch member.name {
        case "redirect":
            let text = try member.string()
            guard text == "manual" else { throw unsupported(member, "following redirects") }
        case "max_redirects": _ = try member.count()
        case "auth":
            guard member.isNull else { throw unsupported(member, "credentials") }
        case "cookie_jar", "trusted_redirect":
            guard try !member.bool() else { throw unsupported(member, "this") }
        case "cache":
            let text = try member.string()
            guard text == "none" || text == "no-store" else { throw unsupported(member, "the cache") }
        case "retry":
            guard try member.count() == 0 else { throw unsupported(member, "retries") }
        case "keep_method":
            if member.isNull { return }
            guard try member.array().isEmpty else { throw unsupported(member, "following redirects") }
        default:
            throw BatchFault(.unsupported, "the key “\(member.name)” is unknown")
        }
    }

    private static func unsupported(_ member: BatchMember, _ feature: String) -> BatchFault {
        BatchFault(.unsupported, "“\(member.name)”: \(feature) is not supported yet")
    }
}
