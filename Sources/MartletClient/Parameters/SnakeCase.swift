/// Names of Swift as names of many services: `userName` as `user_name`.
enum SnakeCase {
    /// The name in lower case, with `_` before each word.
    ///
    /// A word begins at a capital behind a letter or digit that is none, and at the last of several capitals where a small
    /// letter follows: `myURLProperty` is `my_url_property`. Everything else is kept.
    static func text(_ name: String) -> String {
        let characters = Array(name)
        var text = ""
        for (index, character) in characters.enumerated() {
            guard character.isUppercase else {
                text.append(character)
                continue
            }
            if index > 0 {
                let before = characters[index - 1]
                let endsCapitals =
                    before.isUppercase && characters.indices.contains(index + 1)
                    && characters[index + 1].isLowercase
                if before.isLowercase || before.isNumber || endsCapitals { text.append("_") }
            }
            text += character.lowercased()
        }
        return text
    }
}
