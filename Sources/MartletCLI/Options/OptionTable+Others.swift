extension OptionTable {
    /// Options that mean to another command what they mean to `get`.
    /// - Parameters:
    ///   - names: Their long names, with blanks between them.
    ///   - helps: What the other help says of them where it is another thing.
    static func options(_ names: String, helps: [String: String] = [:]) -> [CurlOption] {
        names.split(separator: " ").compactMap { name in
            guard var option = commandOptions[String(name)] else { return nil }
            if let help = helps[option.name] { option.help = help }
            return option
        }
    }

    /// All options, as another command refuses them by name. Those that `get` refuses itself keep their reason.
    /// - Parameters:
    ///   - reasons: Why some are.
    ///   - others: Why the others are.
    static func refusals(_ reasons: [String: String], others: String) -> [CurlOption] {
        all.map { option in
            if let reason = reasons[option.name] { return .refused(option.name, option.letter, reason) }
            if case .refused = option.kind { return option }
            return .refused(option.name, option.letter, others)
        }
    }
}
