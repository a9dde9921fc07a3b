module.exports.longer = async (output, context) => ({
  pass: output.length > context.config.than,
  score: 1,
  reason: 'its length',
});
