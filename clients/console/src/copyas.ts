// A statement as a program of somebody else's: what to paste where.

export interface Place {
  origin: string;
  flight: string;
  user: string;
}

export const languages = ["Python", "pandas", "Polars", "JDBC", "curl"] as const;
export type Language = (typeof languages)[number];

/** The program that runs a statement. Passwords are never in it. */
export function program(language: Language, sql: string, { origin, flight, user }: Place): string {
  const python = `"""${sql.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"')}"""`;
  const known = user !== "anonymous" && user !== "";
  const login = known ? `, user=${JSON.stringify(user)}, password=getpass.getpass()` : "";
  const ask = known ? "import getpass\n" : "";
  switch (language) {
    case "Python":
      return `${ask}import bowshot\n\nconnection = bowshot.connect(${JSON.stringify(flight)}${login})\ntable = connection.sql(${python}).arrow()\n`;
    case "pandas":
      return `${ask}import bowshot\n\nconnection = bowshot.connect(${JSON.stringify(flight)}${login})\nframe = connection.sql(${python}).df()\n`;
    case "Polars":
      return `${ask}import bowshot\n\nconnection = bowshot.connect(${JSON.stringify(flight)}${login})\nframe = connection.sql(${python}).pl()\n`;
    case "JDBC":
      return jdbc(sql, flight, known ? user : null);
    case "curl":
      return `curl ${shell(`${origin}/v1/sql?format=csv`)}${known ? ` -u ${shell(user)}` : ""} -H 'content-type: text/plain' \\\n  --data-binary ${shell(sql)}\n`;
  }
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function jdbc(sql: string, flight: string, user: string | null): string {
  const place = flight.replace(/^grpc(\+tls)?:\/\//, "");
  const encrypted = flight.startsWith("grpc+tls");
  const text = sql.split("\n").map((line) => JSON.stringify(`${line}\n`)).join("\n        + ");
  const login = user === null ? "" : `properties.put("user", ${JSON.stringify(user)});\nproperties.put("password", System.getenv("BOWSHOT_PASSWORD"));\n`;
  return (
    `// org.apache.arrow:flight-sql-jdbc-driver; java --add-opens=java.base/java.nio=ALL-UNNAMED\n` +
    `var properties = new java.util.Properties();\n${login}` +
    `try (var connection = java.sql.DriverManager.getConnection("jdbc:arrow-flight-sql://${place}?useEncryption=${encrypted}", properties);\n` +
    `     var statement = connection.createStatement();\n` +
    `     var rows = statement.executeQuery(${text})) {\n` +
    `    while (rows.next()) System.out.println(rows.getString(1));\n}\n`
  );
}
